// Point Cloud Library files: a text header that names the fields, then rows as text, rows as bytes,
// or LZF-compressed columns.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "points/lzf.hpp"
#include "points/text.hpp"

namespace pumice::detail {
namespace {

struct Field {
  std::string_view name;
  Scalar type = Scalar::f32;
  std::int64_t count = 1;
};

enum class Storage : unsigned char { ascii, binary, compressed };

struct Header {
  std::vector<Field> fields;
  std::int64_t points = 0;
  Storage storage = Storage::ascii;
  std::size_t size = 0;   // bytes of the header

  std::int64_t row_bytes() const {
    std::int64_t bytes = 0;
    for (const Field& field : fields)
      bytes += field.count * size_of(field.type);
    return bytes;
  }
};

constexpr std::size_t kMostFields = 1024;
constexpr std::int64_t kMostCount = 1 << 16;   // elements of one field: descriptors have hundreds

/// The header's lines by their first word.
struct HeaderLines {
  std::vector<std::string_view> fields, size, type, count, width, height, points, data;
  std::size_t length = 0;
};

HeaderLines split_header(std::string_view text, std::string_view name) {
  HeaderLines header;
  const std::pair<std::string_view, std::vector<std::string_view>*> kLines[] = {
      {"FIELDS", &header.fields}, {"COLUMNS", &header.fields}, {"SIZE", &header.size},
      {"TYPE", &header.type},     {"COUNT", &header.count},    {"WIDTH", &header.width},
      {"HEIGHT", &header.height}, {"POINTS", &header.points},  {"DATA", &header.data},
  };
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    const std::string_view first = next_word(line);
    if (first.empty() || first.starts_with('#') || first == "VERSION" || first == "VIEWPOINT") {
      continue;
    }
    bool known = false;
    for (const auto& [key, target] : kLines) {
      if (first != key) continue;
      PUMICE_EXPECTS(target->empty(), name, ": has two ", key, " lines; it is not a .pcd file");
      *target = words(line);
      known = true;
    }
    PUMICE_EXPECTS(known, name, ": header line \"", excerpt(first),
                   "\" is none of a .pcd file, so it is not one");
    if (first == "DATA") {
      header.length = lines.position();
      return header;
    }
  }
  raise_user(name, ": has no DATA line; it is not a .pcd file or is truncated");
}

std::int64_t header_number(const std::vector<std::string_view>& line, std::size_t at,
                           const char* key, std::int64_t low, std::int64_t high,
                           std::string_view name) {
  PUMICE_EXPECTS(at < line.size(), name, ": its ", key, " line is missing or too short");
  const std::optional<std::int64_t> value = parse_number<std::int64_t>(line[at]);
  PUMICE_EXPECTS(value && *value >= low && *value <= high, name, ": ", key, " = \"",
                 excerpt(line[at]), "\"; expected a whole number from ", low, " to ", high);
  return *value;
}

Scalar field_type(std::string_view type, std::int64_t size, std::string_view name) {
  struct Row {
    char letter;
    std::int64_t size;
    Scalar type;
  };
  static constexpr Row kRows[] = {
      {'F', 4, Scalar::f32}, {'F', 8, Scalar::f64}, {'I', 1, Scalar::i8}, {'I', 2, Scalar::i16},
      {'I', 4, Scalar::i32}, {'I', 8, Scalar::i64}, {'U', 1, Scalar::u8}, {'U', 2, Scalar::u16},
      {'U', 4, Scalar::u32}, {'U', 8, Scalar::u64},
  };
  for (const Row& row : kRows) {
    if (type.size() == 1 && type[0] == row.letter && size == row.size) return row.type;
  }
  raise_user(name, ": TYPE ", excerpt(type), " of SIZE ", size,
             " is no field type; there are F4 F8, I1 I2 I4 I8 and U1 U2 U4 U8");
}

Header parse_header(std::string_view text, std::string_view name) {
  const HeaderLines lines = split_header(text, name);
  PUMICE_EXPECTS(!lines.fields.empty() && lines.fields.size() <= kMostFields, name, ": names ",
                 lines.fields.size(), " fields; expected 1 to ", kMostFields);
  Header header;
  header.size = lines.length;
  for (std::size_t i = 0; i < lines.fields.size(); ++i) {
    Field field;
    field.name = lines.fields[i];
    const std::int64_t size = header_number(lines.size, i, "SIZE", 1, 8, name);
    PUMICE_EXPECTS(i < lines.type.size(), name, ": its TYPE line is missing or too short");
    field.type = field_type(lines.type[i], size, name);
    if (!lines.count.empty()) {
      field.count = header_number(lines.count, i, "COUNT", 1, kMostCount, name);
    }
    header.fields.push_back(field);
  }
  constexpr std::int64_t kMostPoints = std::numeric_limits<std::int32_t>::max();
  const std::int64_t width = header_number(lines.width, 0, "WIDTH", 0, kMostPoints, name);
  const std::int64_t height = header_number(lines.height, 0, "HEIGHT", 0, kMostPoints, name);
  header.points = width * height;
  if (!lines.points.empty()) {
    const std::int64_t points = header_number(lines.points, 0, "POINTS", 0, kMostPoints, name);
    PUMICE_EXPECTS(points == header.points, name, ": POINTS is ", points,
                   ", but WIDTH x HEIGHT is ", header.points);
  }
  PUMICE_EXPECTS(header.points <= kMostPoints, name, ": announces ", header.points,
                 " points; at most 2^31 - 1 fit");
  const std::string_view storage = lines.data.empty() ? std::string_view{} : lines.data[0];
  PUMICE_EXPECTS(storage == "ascii" || storage == "binary" || storage == "binary_compressed", name,
                 ": DATA is \"", excerpt(storage),
                 "\"; expected ascii, binary or binary_compressed");
  header.storage = storage == "ascii"    ? Storage::ascii
                   : storage == "binary" ? Storage::binary
                                         : Storage::compressed;
  return header;
}

/// Enters a field where it means something.
void place(PointColumns& columns, const Field& field, const Column& column, std::string_view name) {
  const std::optional<Role> role = role_of(field.name);
  if (!role) return;
  PUMICE_EXPECTS(field.count == 1, name, ": field ", excerpt(field.name), " has COUNT ",
                 field.count, "; expected 1");
  PUMICE_EXPECTS(columns[*role].first == nullptr, name, ": has two fields for what ",
                 excerpt(field.name), " means; keep one of them");
  columns[*role] = column;
}

PointCloud from_text(std::string_view text, const Header& header, std::string_view name) {
  std::int64_t width = 0;
  for (const Field& field : header.fields)
    width += field.count;
  const TextTable table = read_table(text, header.points, width, name);
  static constexpr double kNothing = 0.0;
  const double* first = header.points == 0 ? &kNothing : table.values.data();
  PointColumns columns{header.points, {}};
  std::int64_t at = 0;
  for (const Field& field : header.fields) {
    const double* start = header.points == 0 ? first : first + at;
    place(columns, field,
          {reinterpret_cast<const std::byte*>(start),
           width * static_cast<std::int64_t>(sizeof(double)), Scalar::f64, false},
          name);
    at += field.count;
  }
  return assemble(columns, NotFinite::drop, name);
}

PointCloud from_rows(Bytes rows, const Header& header, std::string_view name) {
  const std::int64_t row_bytes = header.row_bytes();
  const std::optional<std::int64_t> needed = product(header.points, row_bytes);
  PUMICE_EXPECTS(needed && *needed <= static_cast<std::int64_t>(rows.size()), name, ": announces ",
                 header.points, " points of ", row_bytes, " bytes, but only ", rows.size(),
                 " bytes follow; it is truncated");
  static constexpr std::byte kNothing{};
  PointColumns columns{header.points, {}};
  std::int64_t offset = 0;
  for (const Field& field : header.fields) {
    const std::byte* first = header.points == 0 ? &kNothing : rows.data() + offset;
    place(columns, field, {first, row_bytes, field.type, false}, name);
    offset += field.count * size_of(field.type);
  }
  return assemble(columns, NotFinite::drop, name);
}

std::uint32_t word_at(Bytes bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

PointCloud from_compressed(Bytes bytes, const Header& header, std::string_view name) {
  PUMICE_EXPECTS(bytes.size() >= 8, name, ": ends before its compressed data; it is truncated");
  const std::size_t packed = word_at(bytes, 0);
  const std::size_t unpacked = word_at(bytes, 4);
  PUMICE_EXPECTS(packed <= bytes.size() - 8, name, ": announces ", packed,
                 " compressed bytes, but only ", bytes.size() - 8, " follow; it is truncated");
  const std::optional<std::int64_t> needed = product(header.points, header.row_bytes());
  PUMICE_EXPECTS(needed && static_cast<std::size_t>(*needed) == unpacked, name, ": ", header.points,
                 " points of ", header.row_bytes(), " bytes do not make the ", unpacked,
                 " bytes that its compressed data should have");
  PUMICE_EXPECTS(unpacked <= packed * kLzfLargestGrowth, name, ": ", packed,
                 " compressed bytes cannot hold ", unpacked, "; it is damaged");
  Buffer<std::byte> data(static_cast<std::int64_t>(unpacked));
  PUMICE_EXPECTS(lzf_decompress(bytes.subspan(8, packed), data.span()), name,
                 ": its compressed data is damaged");
  static constexpr std::byte kNothing{};
  PointColumns columns{header.points, {}};
  std::int64_t offset = 0;
  for (const Field& field : header.fields) {
    const std::int64_t stride = field.count * size_of(field.type);
    const std::byte* first = header.points == 0 ? &kNothing : data.data() + offset;
    place(columns, field, {first, stride, field.type, false}, name);
    offset += stride * header.points;
  }
  return assemble(columns, NotFinite::drop, name);
}

}   // namespace

PointCloud read_pcd(Bytes bytes, std::string_view name) {
  const Header header = parse_header(as_text(bytes), name);
  const Bytes data = bytes.subspan(header.size);
  switch (header.storage) {
    case Storage::ascii: return from_text(as_text(data), header, name);
    case Storage::binary: return from_rows(data, header, name);
    case Storage::compressed: return from_compressed(data, header, name);
  }
  raise_internal(std::source_location::current(), "storage of a .pcd file");
}

}   // namespace pumice::detail
