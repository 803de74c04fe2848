// .ply and .npy files.
#include <pumice/points/write.hpp>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include <pumice/core/atomic_file.hpp>

namespace pumice {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written in native order");

constexpr std::size_t kFlush = std::size_t{1} << 20;   // bytes gathered before a write

/// Gathers small pieces into large writes.
class Gathering {
 public:
  explicit Gathering(AtomicFile& file) : file_(file) {}
  void text(std::string_view piece) { bytes(piece.data(), piece.size()); }
  void bytes(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    pending_.insert(pending_.end(), first, first + size);
    if (pending_.size() >= kFlush) flush();
  }
  /// The shortest text that reads back to the same value.
  template <class T> void number(T value) {
    std::array<char, 32> digits;
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    PUMICE_ENSURES(error == std::errc{}, "a number longer than 32 characters");
    text({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  void flush() {
    file_.write(pending_);
    pending_.clear();
  }

 private:
  AtomicFile& file_;
  std::vector<std::byte> pending_;
};

/// One property of a vertex: a column of a tensor.
struct Property {
  const char* type;   // as .ply names it
  const char* name;
  const std::byte* first;
  std::size_t stride;
  DType dtype;
};

void add_column(std::vector<Property>& properties, const Tensor& column, const char* type,
                const char* name, std::int64_t points, DType dtype) {
  if (!column.defined()) return;
  PUMICE_EXPECTS(column.dtype() == dtype && column.shape() == Shape{points}, "write_ply: ", name,
                 " has shape ", to_string(column.shape()), " ", name_of(column.dtype()),
                 "; expected [", points, "] ", name_of(dtype));
  properties.push_back(
      {type, name, static_cast<const std::byte*>(column.raw()), size_of(dtype), dtype});
}

std::vector<Property> properties_of(const PointCloud& cloud, ConstTensorView colour) {
  const std::int64_t points = cloud.size();
  const Tensor& positions = cloud.positions;
  PUMICE_EXPECTS(positions.defined() && positions.dtype() == DType::f32 &&
                     positions.shape() == Shape({points, 3}),
                 "write_ply: positions have shape ", to_string(positions.shape()),
                 "; expected [P, 3] f32");
  std::vector<Property> properties;
  static constexpr const char* kAxes[] = {"x", "y", "z"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto* first = static_cast<const std::byte*>(positions.raw());
    properties.push_back(
        {"float", kAxes[axis], first == nullptr ? first : first + 4 * axis, 12, DType::f32});
  }
  add_column(properties, cloud.intensity, "float", "intensity", points, DType::f32);
  add_column(properties, cloud.time, "float", "time", points, DType::f32);
  add_column(properties, cloud.ring, "int", "ring", points, DType::i32);
  add_column(properties, cloud.labels, "int", "label", points, DType::i32);
  if (!colour.defined()) return properties;
  PUMICE_EXPECTS(colour.dtype() == DType::u8 && colour.shape() == Shape({points, 3}),
                 "write_ply: colour has shape ", to_string(colour.shape()), " ",
                 name_of(colour.dtype()), "; expected [", points, ", 3] u8");
  static constexpr const char* kColours[] = {"red", "green", "blue"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto* first = static_cast<const std::byte*>(colour.raw());
    properties.push_back(
        {"uchar", kColours[i], first == nullptr ? first : first + i, 3, DType::u8});
  }
  return properties;
}

template <class T> T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void write_text(Gathering& out, const Property& property, std::int64_t point) {
  const std::byte* at = property.first + static_cast<std::size_t>(point) * property.stride;
  switch (property.dtype) {
    case DType::f32: out.number(load<float>(at)); return;
    case DType::i32: out.number(load<std::int32_t>(at)); return;
    default: out.number(static_cast<int>(load<std::uint8_t>(at))); return;
  }
}

/// "'<f4'", or nothing for a type NumPy does not have.
std::string numpy_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return "<f8";
    case DType::f32: return "<f4";
    case DType::f16: return "<f2";
    case DType::i64: return "<i8";
    case DType::i32: return "<i4";
    case DType::i16: return "<i2";
    case DType::u8: return "|u1";
    case DType::bf16: break;
  }
  return {};
}

/// Magic, version 1.0, and a dictionary padded so that the elements begin at a multiple of 64.
std::string numpy_header(const ConstTensorView& array) {
  std::string shape;
  for (const std::int64_t extent : array.shape().extents())
    shape += std::to_string(extent) + ", ";
  std::string text = "{'descr': '" + numpy_type(array.dtype()) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t kBefore = 10;   // magic, version, length
  const std::size_t total = (kBefore + text.size() + 1 + 63) / 64 * 64;
  text.append(total - kBefore - text.size() - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xffu);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}   // namespace

void write_ply(const std::filesystem::path& path, const PointCloud& cloud,
               const PlyOptions& options) {
  const std::vector<Property> properties = properties_of(cloud, options.colour);
  AtomicFile file(path);
  Gathering out(file);
  out.text(options.binary ? "ply\nformat binary_little_endian 1.0\n" : "ply\nformat ascii 1.0\n");
  out.text("element vertex " + std::to_string(cloud.size()) + "\n");
  for (const Property& property : properties) {
    out.text(std::string("property ") + property.type + " " + property.name + "\n");
  }
  out.text("end_header\n");
  for (std::int64_t point = 0; point < cloud.size(); ++point) {
    for (const Property& property : properties) {
      if (options.binary) {
        out.bytes(property.first + static_cast<std::size_t>(point) * property.stride,
                  size_of(property.dtype));
      } else {
        if (&property != properties.data()) out.text(" ");
        write_text(out, property, point);
      }
    }
    if (!options.binary) out.text("\n");
  }
  out.flush();
  file.commit();
}

void write_npy(const std::filesystem::path& path, ConstTensorView array) {
  PUMICE_EXPECTS(array.defined(), "write_npy: the array is undefined");
  PUMICE_EXPECTS(!numpy_type(array.dtype()).empty(), "write_npy: NumPy has no ",
                 name_of(array.dtype()), "; convert to f32 first");
  AtomicFile file(path);
  const std::string header = numpy_header(array);
  file.write(std::as_bytes(std::span(header)));
  const std::size_t bytes = static_cast<std::size_t>(array.elements()) * size_of(array.dtype());
  file.write({static_cast<const std::byte*>(array.raw()), bytes});
  file.commit();
}

}   // namespace pumice
