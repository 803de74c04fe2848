// Tensors that commands take from a safetensors file.
#pragma once

#include <initializer_list>
#include <string_view>

#include <pumice/core/safetensors.hpp>

namespace pumice::cli {

/// UserError for a tensor of `file` that is none of `names`: a misspelt one would be left out.
void check_names(const SafetensorsFile& file, std::initializer_list<std::string_view> names);

}   // namespace pumice::cli
