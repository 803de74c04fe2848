// Reading and writing safetensors. Nothing in the header is believed before it is checked.
#include <pumice/core/safetensors.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include <pumice/core/atomic_file.hpp>

#include "core/file.hpp"

namespace pumice {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "elements are stored little endian");

constexpr std::uint64_t kLargestHeader = 100'000'000;   // bytes, as the reference reader has it
constexpr int kDeepest = 4;                             // header > tensor > shape > number
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr DTypeName kDTypes[] = {
    {"F64", DType::f64}, {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16},
    {"I64", DType::i64}, {"I32", DType::i32}, {"I16", DType::i16}, {"U8", DType::u8},
};

std::string_view stored_name(DType dtype) {
  for (const DTypeName& row : kDTypes) {
    if (row.dtype == dtype) return row.name;
  }
  detail::raise_internal(std::source_location::current(), "dtype without a safetensors name");
}

/// Hostile text for an error message: at most 60 characters, printable ones only.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60))
    result += c < ' ' || c > '~' ? '?' : c;
  return result + (text.size() > 60 ? "…\"" : "\"");
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 10; ++i) {
    text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  }
  return names.size() > 10 ? text + ", …" : text;
}

/// Parses JSON without exceptions, refusing what a parser would quietly repair: repeated keys, of
/// which it keeps the last, and deep nesting.
Json parse_json(std::string_view text, const std::string& name) {
  std::vector<std::set<std::string>> keys;
  std::string trouble;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start: keys.emplace_back(); break;
      case Json::parse_event_t::object_end: keys.pop_back(); break;
      case Json::parse_event_t::key: {
        const auto& key = value.get_ref<const std::string&>();
        if (!keys.back().insert(key).second && trouble.empty()) {
          trouble = "names " + in_quotes(key) + " twice";
        }
        break;
      }
      default: break;
    }
    if (depth > kDeepest && trouble.empty()) trouble = "is nested too deeply";
    return true;
  };
  Json header = Json::parse(text, watch, /*allow_exceptions=*/false);
  PUMICE_EXPECTS(trouble.empty(), name, ": its header ", trouble, "; it is damaged");
  PUMICE_EXPECTS(header.is_object(), name,
                 ": its header is not a JSON object; it is not a safetensors file or is damaged");
  return header;
}

/// A whole number from 0 to 2^63 - 1, or nothing.
bool to_count(const Json& value, std::int64_t& out) {
  if (!value.is_number_unsigned()) return false;
  const auto number = value.get<std::uint64_t>();
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
  out = static_cast<std::int64_t>(number);
  return true;
}

}   // namespace

struct SafetensorsParser {
  using Entry = SafetensorsFile::Entry;
  SafetensorsFile& file;

  void parse() {
    const std::uint64_t size = file.source_->size();
    PUMICE_EXPECTS(size >= 8, file.name_, ": has ", size,
                   " bytes, which is too short for a safetensors file");
    std::uint64_t length = 0;
    file.source_->read(0, std::as_writable_bytes(std::span(&length, 1)));
    PUMICE_EXPECTS(length <= kLargestHeader, file.name_, ": announces a header of ", length,
                   " bytes; at most ", kLargestHeader,
                   " are read, so it is not a safetensors file");
    PUMICE_EXPECTS(length <= size - 8, file.name_, ": announces a header of ", length,
                   " bytes, but only ", size - 8, " follow; it is truncated");
    std::string text(static_cast<std::size_t>(length), '\0');
    file.source_->read(8, std::as_writable_bytes(std::span(text)));
    const Json header = parse_json(text, file.name_);
    const std::uint64_t data = 8 + length;
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata) {
        parse_metadata(value);
      } else {
        file.entries_.emplace(name, parse_entry(name, value, data));
      }
    }
    check_cover(data, size);
  }

  void parse_metadata(const Json& value) {
    PUMICE_EXPECTS(value.is_object(), file.name_, ": its __metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      PUMICE_EXPECTS(text.is_string(), file.name_, ": __metadata__ ", in_quotes(key),
                     " is not a text");
      file.metadata_.emplace(key, text.get<std::string>());
    }
  }

  Entry parse_entry(const std::string& name, const Json& value, std::uint64_t data) const {
    PUMICE_EXPECTS(value.is_object() && value.size() == 3 && value.contains("dtype") &&
                       value.contains("shape") && value.contains("data_offsets"),
                   file.name_, ": tensor ", in_quotes(name),
                   " needs exactly dtype, shape and data_offsets");
    Entry entry;
    entry.dtype = parse_type(name, value.at("dtype"));
    const std::int64_t bytes = parse_shape(name, value.at("shape"), entry);
    const Json& offsets = value.at("data_offsets");
    std::int64_t begin = 0, end = 0;
    PUMICE_EXPECTS(offsets.is_array() && offsets.size() == 2 && to_count(offsets[0], begin) &&
                       to_count(offsets[1], end) && begin <= end,
                   file.name_, ": data_offsets of tensor ", in_quotes(name),
                   " are not two ascending whole numbers");
    const std::uint64_t room = file.source_->size() - data;
    PUMICE_EXPECTS(static_cast<std::uint64_t>(end) <= room, file.name_, ": tensor ",
                   in_quotes(name), " ends at byte ", end, " of ", room,
                   "; the file is truncated or damaged");
    PUMICE_EXPECTS(end - begin == bytes, file.name_, ": tensor ", in_quotes(name), " of shape ",
                   value.at("shape").dump(), " ", stored_name(entry.dtype), " takes ", bytes,
                   " bytes, but has ", end - begin);
    entry.begin = data + static_cast<std::uint64_t>(begin);
    entry.end = data + static_cast<std::uint64_t>(end);
    return entry;
  }

  DType parse_type(const std::string& name, const Json& value) const {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    for (const DTypeName& row : kDTypes) {
      if (row.name == text) return row.dtype;
    }
    detail::raise_user(file.name_, ": tensor ", in_quotes(name), " has dtype ", in_quotes(text),
                       "; known are F64, F32, F16, BF16, I64, I32, I16 and U8");
  }

  /// Fills in the shape and returns the bytes it takes.
  std::int64_t parse_shape(const std::string& name, const Json& value, Entry& entry) const {
    PUMICE_EXPECTS(value.is_array(), file.name_, ": shape of tensor ", in_quotes(name),
                   " is not a list");
    PUMICE_EXPECTS(value.size() <= static_cast<std::size_t>(Shape::kMaxRank), file.name_,
                   ": tensor ", in_quotes(name), " has ", value.size(), " axes; at most ",
                   Shape::kMaxRank, " are known");
    std::vector<std::int64_t> extents;
    auto bytes = static_cast<std::int64_t>(size_of(entry.dtype));
    bool fits = true;
    for (const Json& item : value) {
      std::int64_t extent = 0;
      PUMICE_EXPECTS(to_count(item, extent), file.name_, ": shape of tensor ", in_quotes(name),
                     " is ", in_quotes(value.dump()), "; extents are whole numbers from 0");
      fits &= !__builtin_mul_overflow(bytes, extent, &bytes);
      extents.push_back(extent);
    }
    PUMICE_EXPECTS(fits, file.name_, ": tensor ", in_quotes(name), " of shape ", value.dump(),
                   " has more than 2^63 bytes");
    if (extents.empty()) extents.push_back(1);
    entry.shape = Shape(extents);
    return bytes;
  }

  /// The tensors must lie end to end from the first byte of data to the last.
  void check_cover(std::uint64_t data, std::uint64_t size) const {
    std::vector<std::pair<const std::string*, const Entry*>> order;
    for (const auto& [name, entry] : file.entries_)
      order.emplace_back(&name, &entry);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
    });
    std::uint64_t at = data;
    for (const auto& [name, entry] : order) {
      PUMICE_EXPECTS(entry->begin >= at, file.name_, ": tensor ", in_quotes(*name),
                     " overlaps another one; the file is damaged");
      PUMICE_EXPECTS(entry->begin == at, file.name_, ": ", entry->begin - at,
                     " bytes before tensor ", in_quotes(*name),
                     " belong to none; the file is damaged");
      at = entry->end;
    }
    PUMICE_EXPECTS(at == size, file.name_, ": ", size - at,
                   " bytes at its end belong to no tensor; the file is damaged");
  }
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<detail::ByteSource> source, std::string name)
    : name_(std::move(name)), source_(std::move(source)) {
  SafetensorsParser{*this}.parse();
}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  return {detail::open_file(path), path.string()};
}

SafetensorsFile SafetensorsFile::from_bytes(std::span<const std::byte> bytes,
                                            std::string_view name) {
  return {detail::copy_of(bytes), std::string(name)};
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_)
    result.push_back(name);
  return result;
}

bool SafetensorsFile::contains(std::string_view name) const {
  return entries_.contains(name);
}

const SafetensorsFile::Entry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  PUMICE_EXPECTS(found != entries_.end(), name_, ": has no tensor ", in_quotes(name), "; it has ",
                 entries_.empty() ? std::string("none") : listed(names()));
  return found->second;
}

const Shape& SafetensorsFile::shape(std::string_view name) const {
  return entry(name).shape;
}
DType SafetensorsFile::dtype(std::string_view name) const {
  return entry(name).dtype;
}

Tensor SafetensorsFile::get(std::string_view name) const {
  const Entry& found = entry(name);
  Tensor tensor(found.shape, found.dtype);
  source_->read(found.begin, {static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
  return tensor;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Ordered, so that the header lists tensors as their data lies.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    PUMICE_EXPECTS(name != kMetadata, "write_safetensors: a tensor may not be named ", kMetadata);
    PUMICE_EXPECTS(!header.contains(name), "write_safetensors: two tensors are named ",
                   in_quotes(name));
    PUMICE_EXPECTS(tensor.defined(), "write_safetensors: tensor ", in_quotes(name),
                   " is undefined");
    const std::uint64_t begin = offset;
    offset += static_cast<std::uint64_t>(tensor.elements()) * size_of(tensor.dtype());
    const auto extents = tensor.shape().extents();
    header[name] = {{"dtype", stored_name(tensor.dtype())},
                    {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                    {"data_offsets", {begin, offset}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    detail::raise_user("write_safetensors: a name or metadata text is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');   // so that the elements are aligned to 8 bytes
  const std::uint64_t length = text.size();
  PUMICE_EXPECTS(length <= kLargestHeader, "write_safetensors: the header would take ", length,
                 " bytes; at most ", kLargestHeader, " can be read back");
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(text)));
  for (const auto& [name, tensor] : tensors) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.elements()) * size_of(tensor.dtype());
    file.write({static_cast<const std::byte*>(tensor.raw()), bytes});
  }
  file.commit();
}

}   // namespace pumice
