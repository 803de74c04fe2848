#include "tensor_file.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"

namespace pumice::cli {

void check_names(const SafetensorsFile& file, std::initializer_list<std::string_view> names) {
  for (const std::string& name : file.names()) {
    PUMICE_EXPECTS(std::ranges::find(names, name) != names.end(), file.name(), ": tensor \"",
                   printable(name), "\" is none that this command takes; name it one of ",
                   fmt::format("{}", fmt::join(names, ", ")), ", or leave it out");
  }
}

}   // namespace pumice::cli
