// Sizes and names of element types: one table.
#include <pumice/core/dtype.hpp>

#include <array>

namespace pumice {
namespace {

struct Row {
  DType type;
  std::string_view name;
  std::string_view long_name;
  std::size_t bytes;
  bool floating;
};

constexpr std::array<Row, 8> kTypes{{
    {DType::f64, "f64", "float64", 8, true},
    {DType::f32, "f32", "float32", 4, true},
    {DType::f16, "f16", "float16", 2, true},
    {DType::bf16, "bf16", "bfloat16", 2, true},
    {DType::i64, "i64", "int64", 8, false},
    {DType::i32, "i32", "int32", 4, false},
    {DType::i16, "i16", "int16", 2, false},
    {DType::u8, "u8", "uint8", 1, false},
}};

const Row& row(DType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

}   // namespace

std::size_t size_of(DType type) {
  return row(type).bytes;
}
std::string_view name_of(DType type) {
  return row(type).name;
}
bool is_floating(DType type) {
  return row(type).floating;
}

DType parse_dtype(std::string_view name) {
  for (const Row& entry : kTypes) {
    if (name == entry.name || name == entry.long_name) return entry.type;
    if (entry.floating && name.starts_with("fp") && name.substr(2) == entry.name.substr(1)) {
      return entry.type;
    }
  }
  detail::raise_user("dtype = \"", name, "\": use one of f64, f32, f16, bf16, i64, i32, i16, u8");
}

}   // namespace pumice
