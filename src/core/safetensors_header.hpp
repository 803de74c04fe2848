// The JSON header of a safetensors file, in one walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pumice::detail {

/// Element types of the format, and how many bytes they take.
struct StoredType {
  std::string_view name;   // "F32"
  std::size_t bytes = 0;
};
/// Nothing for a name that is not known here.
std::optional<StoredType> find_stored_type(std::string_view name);
/// "F64, F32, …, U8 and BOOL"
std::string stored_type_names();

/// The entry of one tensor, as the header says it.
struct HeaderEntry {
  StoredType type;
  std::vector<std::int64_t> shape;   // at most six axes
  std::int64_t begin = 0;            // in the data
  std::int64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, HeaderEntry, std::less<>> entries;
  std::map<std::string, std::string> metadata;
};

/// Time and memory go with the length of `text`, whatever it holds. UserError, beginning with
/// `name`, for what is no such header: see SafetensorsFile::open.
SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& name);

}   // namespace pumice::detail
