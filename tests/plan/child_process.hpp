// Work in a process of its own, which may be killed or limited.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <string>

#include <gtest/gtest.h>

namespace pumice::test {

/// What `work` returns in a child process; what it throws, with "threw: " before it.
template <class Work> std::string said_by_child(Work&& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no child";
  if (child == 0) {
    std::string said;
    try {
      said = work();
    } catch (const std::exception& error) {
      said = std::string("threw: ") + error.what();
    }
    const ssize_t put = write(ends[1], said.data(), said.size());
    _exit(put == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + " (status " + std::to_string(status) + ")";
}

/// For a child: who may do everything becomes one who may not.
inline void give_up_privileges() {
  constexpr unsigned kNobody = 65534;
  if (geteuid() != 0) return;
  if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(1);
}

}   // namespace pumice::test
