// Polygon files: a text header that declares elements with properties, then their data as text or
// as bytes of either order. Only the element `vertex` is read.
#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "points/text.hpp"

namespace pumice::detail {
namespace {

enum class Storage : unsigned char { ascii, little, big };

struct Property {
  std::string_view name;
  Scalar type = Scalar::f32;
  bool list = false;
};

struct Element {
  std::string_view name;
  std::int64_t count = 0;
  std::vector<Property> properties;

  bool has_lists() const {
    return std::any_of(properties.begin(), properties.end(),
                       [](const Property& property) { return property.list; });
  }
  std::int64_t row_bytes() const {
    std::int64_t bytes = 0;
    for (const Property& property : properties)
      bytes += size_of(property.type);
    return bytes;
  }
};

struct Header {
  Storage storage = Storage::ascii;
  std::vector<Element> elements;
  std::size_t size = 0;   // bytes of the header
};

constexpr std::size_t kMostProperties = 1024;   // of all elements together

Scalar property_type(std::string_view type, std::string_view name) {
  struct Row {
    std::string_view old_name;
    std::string_view new_name;
    Scalar type;
  };
  static constexpr Row kRows[] = {
      {"char", "int8", Scalar::i8},      {"uchar", "uint8", Scalar::u8},
      {"short", "int16", Scalar::i16},   {"ushort", "uint16", Scalar::u16},
      {"int", "int32", Scalar::i32},     {"uint", "uint32", Scalar::u32},
      {"float", "float32", Scalar::f32}, {"double", "float64", Scalar::f64},
  };
  for (const Row& row : kRows) {
    if (type == row.old_name || type == row.new_name) return row.type;
  }
  raise_user(name, ": property type \"", excerpt(type),
             "\" is none of char, uchar, short, ushort, int, uint, float and double");
}

Storage parse_storage(const std::vector<std::string_view>& line, std::string_view name) {
  const std::string_view format = line.size() > 1 ? line[1] : std::string_view{};
  if (format == "ascii") return Storage::ascii;
  if (format == "binary_little_endian") return Storage::little;
  if (format == "binary_big_endian") return Storage::big;
  raise_user(name, ": format \"", excerpt(format),
             "\" is none of ascii, binary_little_endian and binary_big_endian");
}

Element parse_element(const std::vector<std::string_view>& line, std::string_view name) {
  PUMICE_EXPECTS(line.size() == 3, name, ": an element line needs a name and a count");
  const auto count = parse_number<std::int64_t>(line[2]);
  PUMICE_EXPECTS(count && *count >= 0 && *count <= std::numeric_limits<std::int32_t>::max(), name,
                 ": element ", excerpt(line[1]), " has count \"", excerpt(line[2]),
                 "\"; expected a whole number below 2^31");
  return {line[1], *count, {}};
}

Property parse_property(const std::vector<std::string_view>& line, std::string_view name) {
  if (line.size() == 5 && line[1] == "list") {
    property_type(line[2], name);
    return {line[4], property_type(line[3], name), true};
  }
  PUMICE_EXPECTS(line.size() == 3, name, ": a property line needs a type and a name");
  return {line[2], property_type(line[1], name), false};
}

Header parse_header(std::string_view text, std::string_view name) {
  Lines lines(text);
  std::string_view line;
  PUMICE_EXPECTS(lines.next(line) && line == "ply", name,
                 ": does not begin with \"ply\", so it is not a .ply file");
  Header header;
  bool has_format = false;
  std::size_t properties = 0;
  while (lines.next(line)) {
    const std::vector<std::string_view> parts = words(line);
    if (parts.empty() || parts[0] == "comment" || parts[0] == "obj_info") continue;
    if (parts[0] == "end_header") {
      PUMICE_EXPECTS(has_format, name, ": has no format line");
      header.size = lines.position();
      return header;
    }
    if (parts[0] == "format") {
      PUMICE_EXPECTS(!has_format, name, ": has two format lines");
      header.storage = parse_storage(parts, name);
      has_format = true;
    } else if (parts[0] == "element") {
      header.elements.push_back(parse_element(parts, name));
    } else if (parts[0] == "property") {
      PUMICE_EXPECTS(!header.elements.empty(), name, ": has a property before any element");
      PUMICE_EXPECTS(++properties <= kMostProperties, name, ": has more than ", kMostProperties,
                     " properties");
      header.elements.back().properties.push_back(parse_property(parts, name));
    } else {
      raise_user(name, ": header line \"", excerpt(parts[0]), "\" is none of a .ply file");
    }
  }
  raise_user(name, ": has no end_header line; it is truncated");
}

/// Index of the element `vertex`.
std::size_t find_vertices(const Header& header, std::string_view name) {
  for (std::size_t i = 0; i < header.elements.size(); ++i) {
    const Element& element = header.elements[i];
    if (element.name == "vertex") {
      PUMICE_EXPECTS(!element.has_lists(), name,
                     ": element vertex has a list property; points need plain ones");
      PUMICE_EXPECTS(!element.properties.empty(), name, ": element vertex has no property");
      return i;
    }
    PUMICE_EXPECTS(header.storage == Storage::ascii || !element.has_lists(), name, ": element ",
                   excerpt(element.name),
                   " has a list property and stands before vertex; put vertex first");
  }
  raise_user(name, ": has no element vertex, so it has no points");
}

void place(PointColumns& columns, const Property& property, const Column& column,
           std::string_view name) {
  const std::optional<Role> role = role_of(property.name);
  if (!role) return;
  PUMICE_EXPECTS(columns[*role].first == nullptr, name, ": has two properties for what ",
                 excerpt(property.name), " means; keep one of them");
  columns[*role] = column;
}

PointCloud from_text(std::string_view text, const Header& header, std::size_t vertices,
                     std::string_view name) {
  Lines lines(text);
  std::string_view line;
  for (std::size_t i = 0; i < vertices; ++i) {
    for (std::int64_t row = 0; row < header.elements[i].count; ++row) {
      PUMICE_EXPECTS(lines.next(line), name, ": ends within element ",
                     excerpt(header.elements[i].name), "; it is truncated");
    }
  }
  const Element& vertex = header.elements[vertices];
  const auto width = static_cast<std::int64_t>(vertex.properties.size());
  const TextTable table = read_table(text.substr(lines.position()), vertex.count, width, name);
  static constexpr double kNothing = 0.0;
  PointColumns columns{vertex.count, {}};
  for (std::int64_t i = 0; i < width; ++i) {
    const double* first = vertex.count == 0 ? &kNothing : table.values.data() + i;
    place(columns, vertex.properties[static_cast<std::size_t>(i)],
          {reinterpret_cast<const std::byte*>(first),
           width * static_cast<std::int64_t>(sizeof(double)), Scalar::f64, false},
          name);
  }
  return assemble(columns, NotFinite::refuse, name);
}

PointCloud from_bytes(Bytes data, const Header& header, std::size_t vertices,
                      std::string_view name) {
  constexpr auto kNative =
      std::endian::native == std::endian::little ? Storage::little : Storage::big;
  const bool swapped = header.storage != kNative;
  for (std::size_t i = 0; i <= vertices; ++i) {
    const Element& element = header.elements[i];
    const std::optional<std::int64_t> needed = product(element.count, element.row_bytes());
    PUMICE_EXPECTS(needed && *needed <= static_cast<std::int64_t>(data.size()), name, ": element ",
                   excerpt(element.name), " announces ", element.count, " rows of ",
                   element.row_bytes(), " bytes, but only ", data.size(),
                   " bytes follow; it is truncated");
    if (i < vertices) data = data.subspan(static_cast<std::size_t>(*needed));
  }
  const Element& vertex = header.elements[vertices];
  static constexpr std::byte kNothing{};
  PointColumns columns{vertex.count, {}};
  std::int64_t offset = 0;
  for (const Property& property : vertex.properties) {
    const std::byte* first = vertex.count == 0 ? &kNothing : data.data() + offset;
    place(columns, property, {first, vertex.row_bytes(), property.type, swapped}, name);
    offset += size_of(property.type);
  }
  return assemble(columns, NotFinite::refuse, name);
}

}   // namespace

PointCloud read_ply(Bytes bytes, std::string_view name) {
  const Header header = parse_header(as_text(bytes), name);
  const std::size_t vertices = find_vertices(header, name);
  const Bytes data = bytes.subspan(header.size);
  return header.storage == Storage::ascii ? from_text(as_text(data), header, vertices, name)
                                          : from_bytes(data, header, vertices, name);
}

}   // namespace pumice::detail
