// What sources of kernels over entries and over parts have in common: a specification as C++, with
// assertions that both compilers see the same one, and kernels of the skeleton that take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <pumice/core/error.hpp>

namespace pumice::cuda {

/// InternalError when the spec is not valid, with the reason; `name_of_spec(spec)` is its name.
template <class Spec, class Name> void check_spec(const Spec& spec, const Name& name_of_spec) {
  const char* const why = why_invalid(spec);
  PUMICE_ENSURES(why == nullptr, name_of_spec(spec), ": ", why == nullptr ? "" : why);
}

struct SpecText {
  const char* header;   // of pumice/skeleton, without .h
  const char* type;     // of the specification
  std::string value;    // of it, as C++
  std::uint64_t fingerprint;
  const char* arguments;   // type of what kernels take
  std::size_t argument_bytes;

  /// The include, `kSpec` and the assertions.
  std::string head() const {
    return fmt::format(
        "#include <pumice/skeleton/{}.h>\n"
        "inline constexpr pumice::{} kSpec{};\n"
        "static_assert(pumice::fingerprint(kSpec) == {}u);\n"
        "static_assert(sizeof(pumice::{}) == {});\n",
        header, type, value, fingerprint, arguments, argument_bytes);
  }
  /// The kernel `name`, which runs a function of the skeleton: by default the one of its name.
  std::string kernel(const char* name, int threads, int blocks,
                     const char* function = nullptr) const {
    return fmt::format(
        "PUMICE_KERNEL void __launch_bounds__({0}, {1})\n"
        "{2}(PUMICE_ARGUMENT(pumice::{3}) arguments) {{\n"
        "  pumice::wait_for_previous();\n"
        "  pumice::{4}<kSpec>(arguments);\n"
        "}}\n",
        threads, blocks, name, arguments, function == nullptr ? name : function);
  }
};

}   // namespace pumice::cuda
