// Paths through PTX, by instructions: whether every path to one has waited.
#include "support/ptx_paths.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace pumice::test {
namespace {

struct Instruction {
  std::string_view text;   // without its predicate
  bool conditional = false;
};

struct KernelCode {
  std::string name;
  std::vector<Instruction> instructions;
  std::map<std::string_view, std::size_t> labels;
};

Instruction instruction_of(std::string_view line) {
  if (!line.starts_with('@')) return {line, false};
  return {trimmed(line.substr(line.find_first_of(" \t"))), true};
}

constexpr std::string_view kNameLetters =
    "$_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::vector<KernelCode> kernels_of(std::string_view ptx) {
  std::vector<KernelCode> kernels;
  bool in_body = false;
  while (!ptx.empty()) {
    const std::size_t end = std::min(ptx.find('\n'), ptx.size());
    std::string_view line = trimmed(ptx.substr(0, end));
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
    if (const auto at = line.find(".entry "); at != std::string_view::npos) {
      kernels.emplace_back().name = line.substr(at + 7, line.find('(') - at - 7);
      in_body = false;
      continue;
    }
    if (line.ends_with('{') && !kernels.empty()) in_body = true;
    if (!in_body) continue;
    KernelCode& kernel = kernels.back();
    // A line of assembly in the sources may hold several statements and labels, in braces.
    line = line.substr(0, line.find("//"));
    while (true) {
      line.remove_prefix(std::min(line.find_first_not_of("{} \t"), line.size()));
      if (line.empty()) break;
      const std::size_t name = std::min(line.find_first_not_of(kNameLetters), line.size());
      if (name > 0 && name < line.size() && line[name] == ':' &&
          !line.substr(name).starts_with("::")) {
        kernel.labels[line.substr(0, name)] = kernel.instructions.size();
        line.remove_prefix(name + 1);
        continue;
      }
      const std::size_t stop = std::min(line.find(';'), line.size());
      if (!line.starts_with('.'))
        kernel.instructions.push_back(instruction_of(line.substr(0, stop)));
      line.remove_prefix(std::min(stop + 1, line.size()));
    }
  }
  return kernels;
}

/// Whether a thread may do this before it has waited. What is not known to be harmless is not.
bool may_stand_before_wait(std::string_view text) {
  constexpr std::string_view kHarmless[] = {
      "bfi.", "rem.", "abs.", "clz.", "popc.", "shfl.", "vote.", "bra", "bar.", "activemask.",
      // The multiprocessor's own.
      "ld.shared.", "st.shared.", "mbarrier.init.shared.", "fence.mbarrier_init.", "setmaxnreg.",
      // Memory of the device, but not from the multiprocessor's cache.
      "ld.relaxed.gpu.global.", "cp.async.cg.shared.global", "cp.async.commit_group",
      "cp.async.wait_group", "griddepcontrol.wait"};
  return only_calculates(text) ||
         std::any_of(std::begin(kHarmless), std::end(kHarmless),
                     [&](std::string_view harmless) { return text.starts_with(harmless); });
}

/// Where a branch goes; nothing for what is none.
std::optional<std::string_view> target_of(std::string_view text) {
  if (!text.starts_with("bra")) return {};
  return trimmed(text.substr(std::min(text.find_first_of(" \t"), text.size())));
}

/// For each instruction whether all paths that lead there have waited; nothing where none leads.
std::vector<std::optional<bool>> waited_before(const KernelCode& kernel) {
  std::vector<std::optional<bool>> waited(kernel.instructions.size());
  std::vector<std::pair<std::size_t, bool>> starts{{0, false}};
  while (!starts.empty()) {
    auto [at, has_waited] = starts.back();
    starts.pop_back();
    for (; at < waited.size(); ++at) {
      std::optional<bool>& known = waited[at];
      if (known && (!*known || has_waited)) break;
      known = has_waited;
      const Instruction& instruction = kernel.instructions[at];
      if (const auto target = target_of(instruction.text)) {
        starts.emplace_back(kernel.labels.at(*target), has_waited);
        if (!instruction.conditional) break;
      } else if (!instruction.conditional &&
                 (instruction.text.starts_with("ret") || instruction.text.starts_with("exit"))) {
        break;
      }
      has_waited |= !instruction.conditional && instruction.text == "griddepcontrol.wait";
    }
  }
  return waited;
}

std::string complaint_about(const KernelCode& kernel) {
  if (kernel.instructions.empty()) return " has no instructions";
  const Instruction& last = kernel.instructions.back();
  const bool ends = last.text == "ret" || last.text == "exit" || target_of(last.text);
  if (!ends || last.conditional) return " has no end";
  const std::vector<std::optional<bool>> waited = waited_before(kernel);
  for (std::size_t at = 0; at < waited.size(); ++at) {
    const std::string_view text = kernel.instructions[at].text;
    if (text.find(".nc.") != std::string_view::npos)
      return " reads what another kernel may be writing as constant: " + std::string(text);
    if (waited[at].value_or(true) || may_stand_before_wait(text)) continue;
    return " does on a path that has not waited: " + std::string(text);
  }
  return {};
}

}   // namespace

std::string complaint_about_reading_ahead(std::string_view ptx, EntryCount* count) {
  for (const KernelCode& kernel : kernels_of(ptx)) {
    if (const std::string complaint = complaint_about(kernel); !complaint.empty())
      return kernel.name + complaint;
    if (count == nullptr) continue;
    ++count->entries;
    count->triggers += static_cast<int>(std::count_if(
        kernel.instructions.begin(), kernel.instructions.end(), [](const Instruction& instruction) {
          return instruction.text.starts_with("griddepcontrol.launch_dependents");
        }));
  }
  return {};
}

}   // namespace pumice::test
