// PTX, line by line.
#include "support/ptx.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "core/shared_library.hpp"
#include "jit/device_tree.hpp"
#include "jit/nvrtc.hpp"

namespace pumice::test {

std::string ptx_of(const jit::Source& source, std::string_view architecture) {
  using Size = jit::NvrtcResult (*)(jit::NvrtcProgram, std::size_t*);
  using Text = jit::NvrtcResult (*)(jit::NvrtcProgram, char*);
  static auto& library = *new SharedLibrary({.name = "NVRTC"}, {jit::nvrtc_state().path});
  static Size get_size = nullptr;
  static Text get_text = nullptr;
  static const bool found = [] {
    library.require("nvrtcGetPTXSize", get_size);
    library.require("nvrtcGetPTX", get_text);
    return library.is_open();
  }();
  if (!found) throw std::runtime_error(library.problem());
  std::vector<const char*> texts, names, options;
  for (const jit::DeviceHeader& header : jit::device_tree()) {
    texts.push_back(header.text.c_str());
    names.push_back(header.name.c_str());
  }
  const std::vector<std::string> words = jit::compile_options(source, architecture);
  for (const std::string& word : words)
    options.push_back(word.c_str());
  const jit::Nvrtc& nvrtc = jit::nvrtc();
  jit::NvrtcProgram program = nullptr;
  nvrtc.nvrtcCreateProgram(&program, source.text.c_str(), source.name.c_str(),
                           static_cast<int>(texts.size()), texts.data(), names.data());
  const jit::NvrtcResult result =
      nvrtc.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  if (result == 0) get_size(program, &size);
  std::string ptx(size, '\0');
  if (result == 0) get_text(program, ptx.data());
  if (size > 0) ptx.pop_back();   // the size counts a closing zero
  nvrtc.nvrtcDestroyProgram(&program);
  if (result != 0) throw std::runtime_error(source.name + " does not compile");
  return ptx;
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  return line.substr(0, line.find_last_not_of(kSpaces) + 1);
}

bool only_calculates(std::string_view instruction) {
  constexpr std::array<std::string_view, 24> kHarmless{
      "ld.param.", "mov.", "cvt.",  "cvta.", "add.", "sub.",  "mul.",  "mad.",
      "shl.",      "shr.", "shf.",  "and.",  "or.",  "xor.",  "not.",  "neg.",
      "min.",      "max.", "setp.", "selp.", "bfe.", "prmt.", "lop3.", "div."};
  return std::any_of(kHarmless.begin(), kHarmless.end(),
                     [&](std::string_view harmless) { return instruction.starts_with(harmless); });
}

namespace {

/// Whether a line may stand before the wait: no instruction, or one that only calculates.
bool may_stand_before_wait(std::string_view line) {
  return line.empty() || line.starts_with("//") || line.starts_with(".") || line == "{" ||
         line == "}" || only_calculates(line);
}

}   // namespace

std::string complaint_about_waiting(std::string_view ptx, EntryCount* count) {
  std::string entry;   // whose instructions are being read
  bool in_body = false;
  bool waited = true;
  const auto complaint = [&](std::string_view what, std::string_view line) {
    return entry + " " + std::string(what) + ": " + std::string(line);
  };
  while (!ptx.empty()) {
    const std::size_t end = std::min(ptx.find('\n'), ptx.size());
    const std::string_view line = trimmed(ptx.substr(0, end));
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
    if (const auto at = line.find(".entry "); at != std::string_view::npos) {
      if (!waited) return entry + " never waits";
      entry = line.substr(at + 7, line.find('(') - at - 7);
      in_body = false;
      waited = false;
      if (count != nullptr) ++count->entries;
      continue;
    }
    if (line == "{" && !in_body) in_body = !entry.empty();
    if (line.find(".nc.") != std::string_view::npos)
      return complaint("reads what another kernel may be writing as constant", line);
    if (line.find("griddepcontrol.launch_dependents") != std::string_view::npos) {
      if (!waited) return complaint("lets the next grid in before it has waited", line);
      if (count != nullptr) ++count->triggers;
    }
    if (!in_body || waited) continue;
    if (line.starts_with("griddepcontrol.wait;")) {
      waited = true;
    } else if (!may_stand_before_wait(line)) {
      return complaint("does something before it waits", line);
    }
  }
  return waited ? std::string() : entry + " never waits";
}

}   // namespace pumice::test
