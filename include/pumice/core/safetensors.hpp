// Named tensors in a file: the safetensors format. A length, a JSON header, then the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pumice/core/tensor.hpp>

namespace pumice {

namespace detail {
class ByteSource;
}

/// A tensor as a file holds it: `type` is the format's name of it, F64, F32, F16, BF16, I64, I32,
/// I16, I8, U8 or BOOL.
struct StoredTensor {
  std::string_view type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

/// A file whose header has been checked against its size; elements are read when asked for, each
/// tensor on its own, so that a large file costs what is taken from it.
class SafetensorsFile {
 public:
  /// Takes time in proportion to the header (n log n in its names). UserError for a header longer
  /// than the file or than 100 MB, bad JSON, anything but spaces around it, repeated names, unknown
  /// dtypes, more than six axes, offsets that overlap, leave holes or lie outside the file, sizes
  /// that do not match shape and dtype, and for what torch.save writes.
  static SafetensorsFile open(const std::filesystem::path& path);
  /// The same from memory, copied; `name` appears in errors.
  static SafetensorsFile from_bytes(std::span<const std::byte> bytes,
                                    std::string_view name = "safetensors in memory");

  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  /// In alphabetic order.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// Shape and dtype without reading the elements; UserError when there is no such tensor, and from
  /// `dtype` where it is of a type that Pumice has not (I8, BOOL).
  const Shape& shape(std::string_view name) const;
  DType dtype(std::string_view name) const;
  /// A copy of the elements. A single number (shape []) comes as shape [1].
  Tensor get(std::string_view name) const;
  /// As the file has it, also where Pumice has no such type: shape [] has no axes here.
  StoredTensor stored(std::string_view name) const;
  /// Fills `out` with the elements; InternalError where it is of another size.
  void read(std::string_view name, std::span<std::byte> out) const;
  /// What errors call it: its path, or the name that was given.
  const std::string& name() const { return name_; }
  /// The file's free-form text pairs.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Entry {
    std::string_view type;   // "F32"
    Shape shape;
    bool is_single = false;    // a number, whose shape is [] in the file and [1] here
    std::uint64_t begin = 0;   // in the file
    std::uint64_t end = 0;
  };
  SafetensorsFile(std::unique_ptr<detail::ByteSource> source, std::string name);
  const Entry& entry(std::string_view name) const;

  std::string name_;
  std::unique_ptr<detail::ByteSource> source_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, std::string> metadata_;
  friend struct SafetensorsParser;   // src/core/safetensors.cpp
};

using NamedTensor = std::pair<std::string, ConstTensorView>;

/// Elements of a tensor to be written, which stay the caller's.
struct NamedElements {
  std::string name;
  StoredTensor tensor;
  const std::byte* data = nullptr;
};

/// Writes tensors in the order given, beside `path` and renamed: all or nothing, of any number of
/// threads and processes the last. UserError for a name that repeats or is "__metadata__".
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});
/// The same of elements as they lie, also of types that Pumice has not.
void write_stored_tensors(const std::filesystem::path& path, std::span<const NamedElements> tensors,
                          const std::map<std::string, std::string>& metadata = {});

}   // namespace pumice
