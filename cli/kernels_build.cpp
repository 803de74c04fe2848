// `pumice kernels build`: a bundle of kernels compiled ahead.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>
#include <pumice/jit/support.hpp>

#include "arguments.hpp"
#include "core/printable.hpp"
#include "interrupted.hpp"
#include "jit/bundle_file.hpp"
#include "jit/bundle_set.hpp"
#include "jit/nvrtc.hpp"
#include "kernels_compile.hpp"
#include "outputs.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

/// What an architecture takes of a bundle.
struct Part {
  std::int64_t kernels = 0;
  std::int64_t bytes = 0;
};
using Parts = std::map<std::string, Part>;

void say_json(const KernelArguments& arguments, const Compilation& compilation, Parts parts,
              std::size_t bytes, double seconds) {
  auto all = nlohmann::ordered_json::array();
  for (const cuda::NamedArchitecture& architecture : compilation.architectures()) {
    const Part& part = parts[architecture.name];
    all.push_back(
        {{"architecture", architecture.name}, {"kernels", part.kernels}, {"bytes", part.bytes}});
  }
  print_json(nlohmann::ordered_json{{"path", arguments.out},
                                    {"kernels", compilation.tasks().size()},
                                    {"bytes", bytes},
                                    {"seconds", seconds},
                                    {"compiler", compiler_text()},
                                    {"architectures", all},
                                    {"left_out", compilation.left_out()}});
}

void say_words(const KernelArguments& arguments, const Compilation& compilation, Parts parts,
               std::size_t bytes, double seconds) {
  constexpr double kMebibyte = 1 << 20;
  Table table({"<architecture", "kernels", "MiB"});
  for (const cuda::NamedArchitecture& architecture : compilation.architectures()) {
    const Part& part = parts[architecture.name];
    table.add({architecture.name, with_commas(part.kernels),
               fmt::format("{:.1f}", static_cast<double>(part.bytes) / kMebibyte)});
  }
  fmt::print("{}\n{}, {:.1f} MiB, by {} in {:.0f} s, written to {}\n{}", table.text(),
             counted(std::ssize(compilation.tasks()), "kernel"),
             static_cast<double>(bytes) / kMebibyte, compiler_text(), seconds,
             printable_path(arguments.out), left_out_text(compilation));
}

}   // namespace

void build_bundle(const KernelArguments& arguments) {
  PUMICE_EXPECTS(!arguments.common || !arguments.channels.empty(),
                 "--common is for kernels of the networks beside those of --channels, and none are "
                 "given; leave it out, for alone the networks' are the default");
  check_outputs({}, {{"--out", arguments.out, Format::bundle}});
  // Before anything runs on several threads: those that it starts leave Ctrl-C to it.
  const SaysAtInterrupt stopped("stopped, and no bundle was written");
  const Compilation compilation(arguments, false);
  jit::BundleWriter writer;
  Parts parts;
  compilation.run(
      [&](const CompileTask& task, const Compiled& done, std::vector<std::byte> packed) {
        if (!done.failure.empty()) throw Error(done.failure);
        Part& part = parts[task.architecture.name];
        part.kernels += 1;
        part.bytes += static_cast<std::int64_t>(packed.size());
        const jit::CompilerVersion compiler{jit::nvrtc_state().major, jit::nvrtc_state().minor};
        writer.add({.source = jit::source_digest(*task.kernel.source, task.architecture.name),
                    .architecture = task.architecture.name,
                    .compiler = compiler,
                    .stored_bytes = packed.size()},
                   done.result, std::move(packed));
      });
  const std::vector<std::byte> bytes = writer.finish();
  AtomicFile file(arguments.out);
  file.write(bytes);
  file.commit();
  const auto print = arguments.json ? say_json : say_words;
  print(arguments, compilation, parts, bytes.size(), compilation.seconds());
}

}   // namespace pumice::cli
