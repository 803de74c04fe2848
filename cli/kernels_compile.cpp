// One kernel a thread.
#include "kernels_compile.hpp"

#include <algorithm>
#include <ctime>
#include <mutex>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "jit/bundle_file.hpp"
#include "jit/nvrtc.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

using cuda::NamedArchitecture;

bool is_known(const NamedArchitecture& architecture) {
  const std::vector<int>& known = jit::nvrtc_state().architectures;
  return std::find(known.begin(), known.end(), number_of(architecture.name)) != known.end();
}

double thread_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

}   // namespace

Compilation::Compilation(const KernelArguments& arguments, bool tables) {
  const std::vector<NamedArchitecture> wanted = architectures_of(arguments);
  (void)jit::nvrtc();   // refuses where there is none
  for (const NamedArchitecture& architecture : wanted) {
    if (arguments.architectures.empty() && !is_known(architecture)) {
      left_out_.emplace_back(architecture.name);
      continue;
    }
    architectures_.push_back(architecture);
    const nn::DeviceKernels kernels = selection(arguments, architecture.bit, tables);
    for (const cuda::PlannedKernel& kernel : kernels.all())
      tasks_.push_back({architecture, kernel});
  }
}

void Compilation::run(const Take& take) const {
  ProgressBar progress("compiling", Elsewhere::lines);
  std::mutex mutex;
  int done = 0;
  const auto size = static_cast<std::int64_t>(tasks_.size());
  progress.show(0, static_cast<int>(size));   // the first kernels may take seconds
  parallel_for(size, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const CompileTask& task = tasks_[static_cast<std::size_t>(i)];
      Compiled one;
      std::vector<std::byte> packed;
      try {
        const double start = thread_milliseconds();
        one.result = jit::compile(*task.kernel.source, task.architecture.name);
        one.milliseconds = thread_milliseconds() - start;
        packed = jit::BundleWriter::pack(one.result);
      } catch (const UserError&) {
        throw;
      } catch (const Error& error) {
        one.failure = error.what();
      }
      const std::lock_guard lock(mutex);
      take(task, std::move(one), std::move(packed));
      progress.show(++done, static_cast<int>(tasks_.size()));
    }
  });
}

double Compilation::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

std::string compiler_text() {
  return fmt::format("NVRTC {}.{}", jit::nvrtc_state().major, jit::nvrtc_state().minor);
}

std::string left_out_text(const Compilation& compilation) {
  if (compilation.left_out().empty()) return {};
  return fmt::format("left out: {}, which this compiler does not know\n",
                     fmt::join(compilation.left_out(), ", "));
}

}   // namespace pumice::cli
