// Reading and writing safetensors. Nothing in the header is believed before it is checked.
#include <pumice/core/safetensors.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include <pumice/core/atomic_file.hpp>

#include "core/file.hpp"
#include "core/printable.hpp"
#include "core/safetensors_header.hpp"

namespace pumice {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored little endian");

constexpr std::uint64_t kLargestHeader = 100'000'000;   // bytes, as the reference reader has it
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

std::string in_quotes(std::string_view text) {
  return detail::concatenate('"', printable(text), '"');
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 10; ++i) {
    text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  }
  return names.size() > 10 ? text + ", …" : text;
}

/// As JSON has it: [27,4,32].
std::string in_brackets(const std::vector<std::int64_t>& shape) {
  return nlohmann::json(shape).dump();
}

/// Nothing where they are more than 2^63.
std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& shape, std::size_t element) {
  auto bytes = static_cast<std::int64_t>(element);
  bool fits = true;
  for (const std::int64_t extent : shape)
    fits &= !__builtin_mul_overflow(bytes, extent, &bytes);
  return fits ? std::optional(bytes) : std::nullopt;
}

/// A zip archive or a pickle, where no safetensors file has such a length in its place.
bool is_of_torch_save(const detail::ByteSource& source) {
  std::array<unsigned char, 4> head{};
  source.read(0, std::as_writable_bytes(std::span(head)));
  const bool is_zip = head == std::array<unsigned char, 4>{'P', 'K', 3, 4};
  const bool is_pickle = head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
  return is_zip || is_pickle;
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
    const bool is_credible = length <= kLargestHeader && length <= size - 8;
    PUMICE_EXPECTS(is_credible || !is_of_torch_save(*file.source_), file.name_,
                   ": is a file of torch.save, not a safetensors file; convert it with `pumice "
                   "convert`, or read it in Python with torch.load and model.load_state_dict");
    PUMICE_EXPECTS(length <= kLargestHeader, file.name_, ": announces a header of ", length,
                   " bytes; at most ", kLargestHeader,
                   " are read, so it is not a safetensors file");
    PUMICE_EXPECTS(length <= size - 8, file.name_, ": announces a header of ", length,
                   " bytes, but only ", size - 8, " follow; it is truncated");
    std::string text(static_cast<std::size_t>(length), '\0');
    file.source_->read(8, std::as_writable_bytes(std::span(text)));
    detail::SafetensorsHeader header = detail::parse_safetensors_header(text, file.name_);
    file.metadata_ = std::move(header.metadata);
    const std::uint64_t data = 8 + length;
    for (const auto& [name, entry] : header.entries)
      file.entries_.emplace_hint(file.entries_.end(), name, checked(name, entry, data));
    check_cover(data, size);
  }

  Entry checked(const std::string& name, const detail::HeaderEntry& said,
                std::uint64_t data) const {
    const std::optional<std::int64_t> bytes = bytes_of(said.shape, said.type.bytes);
    PUMICE_EXPECTS(bytes.has_value(), file.name_, ": tensor ", in_quotes(name), " of shape ",
                   in_brackets(said.shape), " has more than 2^63 bytes");
    const std::uint64_t room = file.source_->size() - data;
    PUMICE_EXPECTS(static_cast<std::uint64_t>(said.end) <= room, file.name_, ": tensor ",
                   in_quotes(name), " ends at byte ", said.end, " of ", room,
                   "; the file is truncated or damaged");
    PUMICE_EXPECTS(said.end - said.begin == *bytes, file.name_, ": tensor ", in_quotes(name),
                   " of shape ", in_brackets(said.shape), " ", said.type.name, " takes ", *bytes,
                   " bytes, but has ", said.end - said.begin);
    Entry entry;
    entry.type = said.type.name;
    entry.is_single = said.shape.empty();
    entry.shape = entry.is_single ? Shape{1} : Shape(said.shape);
    entry.begin = data + static_cast<std::uint64_t>(said.begin);
    entry.end = data + static_cast<std::uint64_t>(said.end);
    return entry;
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
  return {detail::open_file(path), printable_path(path)};
}

SafetensorsFile SafetensorsFile::from_bytes(std::span<const std::byte> bytes,
                                            std::string_view name) {
  return {detail::copy_of(bytes), printable_path(name)};
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
  const std::string_view type = entry(name).type;
  for (const DTypeName& row : kDTypes) {
    if (row.name == type) return row.dtype;
  }
  detail::raise_user(name_, ": tensor ", in_quotes(name), " is ", type,
                     ", which Pumice has not; convert it to a type of f64, f32, f16, bf16, i64, "
                     "i32, i16 and u8");
}

StoredTensor SafetensorsFile::stored(std::string_view name) const {
  const Entry& found = entry(name);
  const auto extents = found.shape.extents();
  StoredTensor result{found.type, {extents.begin(), extents.end()}, found.end - found.begin};
  if (found.is_single) result.shape.clear();
  return result;
}

void SafetensorsFile::read(std::string_view name, std::span<std::byte> out) const {
  const Entry& found = entry(name);
  PUMICE_ENSURES(out.size() == found.end - found.begin, name_, ": ", out.size(), " bytes for ",
                 found.end - found.begin, " of ", in_quotes(name));
  source_->read(found.begin, out);
}

Tensor SafetensorsFile::get(std::string_view name) const {
  const Entry& found = entry(name);
  const DType type = dtype(name);
  const std::string what = name_ + ": tensor " + in_quotes(name);
  detail::expect_room(found.end - found.begin, what);
  Tensor tensor = detail::allocated_for(what, [&] { return Tensor(found.shape, type); });
  read(name, {static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
  return tensor;
}

void write_stored_tensors(const std::filesystem::path& path, std::span<const NamedElements> tensors,
                          const std::map<std::string, std::string>& metadata) {
  // Ordered, so that the header lists tensors as their data lies.
  std::string text = "{";
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  try {
    if (!metadata.empty())
      text += nlohmann::json(kMetadata).dump() + ":" + nlohmann::json(metadata).dump();
    for (const auto& [name, tensor, data] : tensors) {
      PUMICE_EXPECTS(name != kMetadata, "write_safetensors: a tensor may not be named ", kMetadata);
      PUMICE_EXPECTS(names.insert(name).second, "write_safetensors: two tensors are named ",
                     in_quotes(name));
      const std::uint64_t begin = offset;
      offset += tensor.bytes;
      const nlohmann::ordered_json entry{
          {"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {begin, offset}}};
      text.append(text.size() > 1 ? "," : "").append(nlohmann::json(name).dump()).append(":");
      text += entry.dump();
    }
  } catch (const nlohmann::json::type_error&) {
    detail::raise_user("write_safetensors: a name or metadata text is not UTF-8");
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');   // so that the elements are aligned to 8 bytes
  const std::uint64_t length = text.size();
  PUMICE_EXPECTS(length <= kLargestHeader, "write_safetensors: the header would take ", length,
                 " bytes; at most ", kLargestHeader, " can be read back");
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(text)));
  for (const auto& [name, tensor, data] : tensors)
    file.write({data, static_cast<std::size_t>(tensor.bytes)});
  file.commit();
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<NamedElements> elements;
  for (const auto& [name, tensor] : tensors) {
    PUMICE_EXPECTS(tensor.defined(), "write_safetensors: tensor ", in_quotes(name),
                   " is undefined");
    const auto extents = tensor.shape().extents();
    const auto bytes = static_cast<std::uint64_t>(tensor.elements()) * size_of(tensor.dtype());
    elements.push_back({name,
                        {stored_name(tensor.dtype()), {extents.begin(), extents.end()}, bytes},
                        static_cast<const std::byte*>(tensor.raw())});
  }
  write_stored_tensors(path, elements, metadata);
}

}   // namespace pumice
