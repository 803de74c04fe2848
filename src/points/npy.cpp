// NumPy arrays: magic, version, a header that is a Python dictionary, elements.
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "points/text.hpp"

namespace pumice::detail {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t size = 0;   // bytes before the elements

  std::optional<std::int64_t> elements() const {
    std::optional<std::int64_t> total = 1;
    for (const std::int64_t extent : shape) {
      if (total) total = product(*total, extent);
    }
    return total;
  }
};

/// Reads the few Python literals a header is made of.
class Literals {
 public:
  Literals(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) { PUMICE_EXPECTS(take(c), name_, ": its header is damaged"); }
  std::string string() {
    skip_blanks();
    PUMICE_EXPECTS(at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"'), name_,
                   ": its header is damaged, or its elements are records; points need plain "
                   "numbers");
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    PUMICE_EXPECTS(end != std::string_view::npos, name_, ": its header is damaged");
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    raise_user(name_, ": its header is damaged");
  }
  std::int64_t integer() {
    skip_blanks();
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const auto value = parse_number<std::int64_t>(text_.substr(at_, end - at_));
    PUMICE_EXPECTS(value.has_value(), name_, ": its shape is not made of whole numbers");
    at_ = end;
    return *value;
  }

 private:
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\n", at_), text_.size()); }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
};

std::size_t little_endian(Bytes bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::size_t>(bytes[i]);
  }
  return value;
}

/// Where the dictionary is: behind a length of two bytes in version 1, of four in 2 and 3.
std::string_view dictionary_of(Bytes bytes, Header& header, std::string_view name) {
  PUMICE_EXPECTS(as_text(bytes).starts_with(kMagic), name,
                 ": does not begin with \\x93NUMPY, so it is not a .npy array");
  PUMICE_EXPECTS(bytes.size() >= 12, name, ": ends within its header; it is truncated");
  const int version = std::to_integer<int>(bytes[6]);
  PUMICE_EXPECTS(version >= 1 && version <= 3, name, ": is a .npy array of version ", version,
                 "; 1 to 3 are known");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t length = little_endian(bytes.subspan(8, length_bytes));
  PUMICE_EXPECTS(length <= bytes.size() - 8 - length_bytes, name, ": announces a header of ",
                 length, " bytes, but only ", bytes.size() - 8 - length_bytes,
                 " follow; it is truncated");
  header.size = 8 + length_bytes + length;
  return as_text(bytes.subspan(8 + length_bytes, length));
}

std::vector<std::int64_t> parse_shape(Literals& literals, std::string_view name) {
  std::vector<std::int64_t> shape;
  literals.need('(');
  while (!literals.take(')')) {
    shape.push_back(literals.integer());
    PUMICE_EXPECTS(shape.size() <= static_cast<std::size_t>(Shape::kMaxRank), name,
                   ": has more than ", Shape::kMaxRank, " axes");
    if (!literals.take(',')) {
      literals.need(')');
      break;
    }
  }
  return shape;
}

Header parse_header(Bytes bytes, std::string_view name) {
  Header header;
  Literals literals(dictionary_of(bytes, header, name), name);
  bool has_descr = false, has_order = false, has_shape = false;
  literals.need('{');
  while (!literals.take('}')) {
    const std::string key = literals.string();
    literals.need(':');
    if (key == "descr" && !has_descr) {
      header.descr = literals.string();
      has_descr = true;
    } else if (key == "fortran_order" && !has_order) {
      header.fortran_order = literals.boolean();
      has_order = true;
    } else if (key == "shape" && !has_shape) {
      header.shape = parse_shape(literals, name);
      has_shape = true;
    } else {
      raise_user(name, ": its header is damaged at \"", excerpt(key), "\"");
    }
    if (!literals.take(',')) {
      literals.need('}');
      break;
    }
  }
  PUMICE_EXPECTS(has_descr && has_order && has_shape, name,
                 ": its header lacks descr, fortran_order or shape");
  return header;
}

/// The type behind "<f4", ">i8", "|u1" …; the byte order goes to `swapped`.
std::optional<Scalar> scalar_of(std::string_view descr, bool& swapped) {
  struct Row {
    std::string_view kind;
    Scalar type;
  };
  static constexpr Row kRows[] = {
      {"f2", Scalar::f16}, {"f4", Scalar::f32}, {"f8", Scalar::f64}, {"i1", Scalar::i8},
      {"i2", Scalar::i16}, {"i4", Scalar::i32}, {"i8", Scalar::i64}, {"u1", Scalar::u8},
      {"u2", Scalar::u16}, {"u4", Scalar::u32}, {"u8", Scalar::u64},
  };
  if (descr.empty()) return std::nullopt;
  constexpr bool kLittle = std::endian::native == std::endian::little;
  swapped = (descr[0] == '>' && kLittle) || (descr[0] == '<' && !kLittle);
  if (std::string_view("<>=|").find(descr[0]) == std::string_view::npos) return std::nullopt;
  for (const Row& row : kRows) {
    if (descr.substr(1) == row.kind) return row.type;
  }
  return std::nullopt;
}

/// The elements, exactly as many bytes as the header says.
Bytes elements_of(Bytes bytes, const Header& header, Scalar type, std::string_view name) {
  const std::optional<std::int64_t> elements = header.elements();
  const auto needed = elements ? product(*elements, size_of(type)) : std::nullopt;
  PUMICE_EXPECTS(needed.has_value(), name, ": its shape has more than 2^63 bytes");
  const Bytes data = bytes.subspan(header.size);
  PUMICE_EXPECTS(static_cast<std::int64_t>(data.size()) == *needed, name, ": its shape needs ",
                 *needed, " bytes, but ", data.size(), " follow; it is truncated or damaged");
  return data;
}

DType dtype_of_scalar(Scalar type, std::string_view descr, std::string_view name) {
  switch (type) {
    case Scalar::f64: return DType::f64;
    case Scalar::f32: return DType::f32;
    case Scalar::f16: return DType::f16;
    case Scalar::i64: return DType::i64;
    case Scalar::i32: return DType::i32;
    case Scalar::i16: return DType::i16;
    case Scalar::u8: return DType::u8;
    default: break;
  }
  raise_user(name, ": holds ", excerpt(descr), "; expected f8, f4, f2, i8, i4, i2 or u1");
}

/// Copies `count` elements of `width` bytes, turning bytes round and columns into rows as needed.
void copy_elements(const std::byte* from, std::byte* to, const Header& header, std::size_t width,
                   bool swapped) {
  const std::size_t axes = header.shape.size();
  const std::int64_t count = *header.elements();
  std::vector<std::int64_t> index(axes, 0);
  for (std::int64_t target = 0; target < count; ++target) {
    std::int64_t source = target;
    if (header.fortran_order) {
      source = 0;
      for (std::size_t axis = axes; axis-- > 0;)
        source = source * header.shape[axis] + index[axis];
      for (std::size_t axis = axes; axis-- > 0;) {
        if (++index[axis] < header.shape[axis]) break;
        index[axis] = 0;
      }
    }
    const std::byte* element = from + static_cast<std::size_t>(source) * width;
    std::byte* out = to + static_cast<std::size_t>(target) * width;
    if (swapped) {
      std::reverse_copy(element, element + width, out);
    } else {
      std::memcpy(out, element, width);
    }
  }
}

/// Whether points seem to be the columns: no scan has so few, and no point so many numbers.
bool looks_transposed(const std::vector<std::int64_t>& shape) {
  return shape[0] > 0 && shape[0] < 16 && shape[1] > 64;
}

}   // namespace

PointCloud read_npy_points(Bytes bytes, std::string_view name) {
  const Header header = parse_header(bytes, name);
  bool swapped = false;
  const std::optional<Scalar> type = scalar_of(header.descr, swapped);
  PUMICE_EXPECTS(type == Scalar::f16 || type == Scalar::f32 || type == Scalar::f64, name,
                 ": holds ", excerpt(header.descr), "; points are f2, f4 or f8");
  PUMICE_EXPECTS(header.shape.size() == 2 && header.shape[1] >= 3, name, ": has shape ",
                 to_string(Shape(header.shape)), "; points are [P, 3] or [P, 4 and more]");
  PUMICE_EXPECTS(!looks_transposed(header.shape), name, ": has shape ",
                 to_string(Shape(header.shape)),
                 ": give [points, columns]; it looks transposed, so save array.T");
  const Bytes data = elements_of(bytes, header, *type, name);
  const std::int64_t width = size_of(*type);
  const std::int64_t points = header.shape[0];
  // Without points the other extent may be anything, and a product of it overflow.
  const std::int64_t columns_there = points == 0 ? 0 : header.shape[1];
  const std::int64_t across = header.fortran_order ? width * points : width;
  const std::int64_t along = header.fortran_order ? width : width * columns_there;
  static constexpr std::byte kNothing{};
  static constexpr Role kRoleOf[] = {Role::x, Role::y, Role::z, Role::intensity, Role::time};
  PointColumns columns{points, {}};
  for (std::int64_t i = 0; i < std::min<std::int64_t>(header.shape[1], 5); ++i) {
    const std::byte* first = points == 0 ? &kNothing : data.data() + i * across;
    columns[kRoleOf[i]] = Column{first, along, *type, swapped};
  }
  return assemble(columns, NotFinite::refuse, name);
}

Tensor read_npy_array(Bytes bytes, std::string_view name) {
  const Header header = parse_header(bytes, name);
  bool swapped = false;
  const std::optional<Scalar> type = scalar_of(header.descr, swapped);
  PUMICE_EXPECTS(type.has_value(), name, ": holds ", excerpt(header.descr),
                 "; expected f8, f4, f2, i8, i4, i2 or u1");
  const DType dtype = dtype_of_scalar(*type, header.descr, name);
  PUMICE_EXPECTS(!header.shape.empty(), name, ": is a single number; expected an array");
  const Bytes data = elements_of(bytes, header, *type, name);
  Tensor result(Shape(header.shape), dtype);
  if (result.bytes() == 0) return result;
  copy_elements(data.data(), static_cast<std::byte*>(result.raw()), header,
                static_cast<std::size_t>(size_of(*type)), swapped);
  return result;
}

}   // namespace pumice::detail
