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

/// A file whose header has been checked against its size; elements are read when asked for, each
/// tensor on its own, so that a large file costs what is taken from it.
class SafetensorsFile {
 public:
  /// UserError for a header longer than the file or than 100 MB, bad JSON, repeated names, unknown
  /// dtypes, more than six axes, offsets that overlap, leave holes or lie outside the file, and
  /// sizes that do not match shape and dtype.
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
  /// Shape and dtype without reading the elements; UserError when there is no such tensor.
  const Shape& shape(std::string_view name) const;
  DType dtype(std::string_view name) const;
  /// A copy of the elements. A single number (shape []) comes as shape [1].
  Tensor get(std::string_view name) const;
  /// The file's free-form text pairs.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  struct Entry {
    DType dtype = DType::f32;
    Shape shape;
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

/// Writes tensors in the order given, beside `path` and renamed: all or nothing. UserError for a
/// name that repeats or is "__metadata__".
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}   // namespace pumice
