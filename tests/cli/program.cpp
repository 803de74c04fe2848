#include "program.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pumice::test {
namespace {

/// As execv() takes them, valid as long as `words`.
std::vector<char*> argv_of(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

}   // namespace

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  ASSERT_TRUE(file.good()) << path;
}

std::string program_path() {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / "pumice").string();
}

Outcome run_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                    const std::string& program) {
  const std::string out = (folder / "stdout.txt").string();
  const std::string err = (folder / "stderr.txt").string();
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = argv_of(words);

  const pid_t child = fork();
  if (child == 0) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    const int in = open("/dev/null", O_RDONLY);
    const int to_out = open(out.c_str(), kFlags, 0600);
    const int to_err = open(err.c_str(), kFlags, 0600);
    const bool redirected = dup2(in, STDIN_FILENO) >= 0 && dup2(to_out, STDOUT_FILENO) >= 0 &&
                            dup2(to_err, STDERR_FILENO) >= 0;
    if (redirected) execv(argv[0], argv.data());
    _exit(127);
  }
  Outcome outcome;
  int status = 0;
  pid_t ended = -1;
  do {
    ended = child < 0 ? child : waitpid(child, &status, 0);
  } while (ended < 0 && child >= 0 && errno == EINTR);
  EXPECT_EQ(ended, child) << std::strerror(errno);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  outcome.out = read_text(out);
  outcome.err = read_text(err);
  return outcome;
}

ProgramTest::ProgramTest() {
  std::string name = (std::filesystem::temp_directory_path() / "pumice-cli-XXXXXX").string();
  const char* made = mkdtemp(name.data());
  if (made == nullptr) throw std::runtime_error("no temporary folder: " + name);
  folder_ = made;
  setenv("PUMICE_PLANS", path("plans.sqlite").c_str(), 1);   // what one test tunes is its own
}

ProgramTest::~ProgramTest() {
  std::error_code ignored;   // a folder left behind is no reason to fail
  std::filesystem::remove_all(folder_, ignored);
}

Outcome ProgramTest::run(const std::vector<std::string>& arguments) const {
  const Outcome outcome = run_program(folder_, arguments);
  expect_grammar(outcome.out);
  expect_grammar(outcome.err);
  return outcome;
}

void ProgramTest::expect_grammar(const std::string& text) {
  static const std::regex kOneOfMany(
      "(^|[^0-9.,])1 (points|voxels|scans|files|sub-folders|labels|rows|pairs|channels|kernels|"
      "sweeps|beams|threads|runs|nodes|bytes|entries|numbers|axes|offsets|classes|coords)\\b");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(text, found, kOneOfMany)) << found.str() << " in: " << text;
}

Outcome ProgramTest::run_well(const std::vector<std::string>& arguments) const {
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome;
}

std::string ProgramTest::on_a_terminal(std::vector<std::string> arguments) {
  const auto [shown, status] = shown_on_a_terminal(std::move(arguments), "");
  EXPECT_EQ(status, 0) << shown;
  return shown;
}

std::string ProgramTest::interrupted(std::vector<std::string> arguments,
                                     const std::string& marker) {
  const auto [shown, status] = shown_on_a_terminal(std::move(arguments), marker);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << shown;
  return shown;
}

std::pair<std::string, int> ProgramTest::shown_on_a_terminal(std::vector<std::string> arguments,
                                                             const std::string& marker) {
  arguments.insert(arguments.begin(), program_path());
  const std::vector<char*> argv = argv_of(arguments);
  return shown_on_a_terminal([&] { execv(argv[0], argv.data()); }, marker);
}

std::pair<std::string, int> ProgramTest::shown_on_a_terminal(const std::function<void()>& work,
                                                             const std::string& marker) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    work();
    _exit(127);
  }
  EXPECT_GE(child, 0);
  std::string shown;
  bool pressed = false;
  char piece[4096];
  for (ssize_t got = 1; got > 0;) {   // ends with EIO when the program does
    got = read(terminal, piece, sizeof piece);
    if (got > 0) shown.append(piece, static_cast<std::size_t>(got));
    if (!pressed && !marker.empty() && shown.find(marker) != std::string::npos) {
      pressed = true;
      EXPECT_EQ(write(terminal, "\x03", 1), 1);
    }
  }
  close(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return {shown, status};
}

nlohmann::json ProgramTest::run_json(std::vector<std::string> arguments) const {
  arguments.emplace_back("--json");
  const Outcome outcome = run_well(arguments);
  nlohmann::json result = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(result.is_discarded()) << outcome.out;
  return result;
}

void ProgramTest::expect_refusal(const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& named) const {
  const Outcome outcome = run(arguments);
  std::string command;
  for (const std::string& word : arguments)
    command += ' ' + word;
  SCOPED_TRACE("pumice" + command);
  EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << outcome.code;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("pumice: ")) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  for (const std::string& part : named) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in: " << outcome.err;
  }
}

void write_points(const std::string& path, const std::vector<Point>& points) {
  std::ostringstream text;
  text.precision(9);
  text << "ply\nformat ascii 1.0\nelement vertex " << points.size() << "\n"
       << "property float x\nproperty float y\nproperty float z\nproperty float intensity\n"
       << "end_header\n";
  for (const Point& p : points)
    text << p[0] << ' ' << p[1] << ' ' << p[2] << ' ' << p[3] << '\n';
  write_text(path, text.str());
}

std::vector<Point> slope(int rows, int columns) {
  std::vector<Point> points;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const float x = 5 + 0.05f * static_cast<float>(row);
      const float y = 0.05f * static_cast<float>(column) - 2;
      points.push_back({x, y, -1 + 0.1f * x, static_cast<float>((row + column) % 10) / 10});
    }
  }
  return points;
}

}   // namespace pumice::test
