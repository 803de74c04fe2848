// Files read whole or piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <pumice/core/buffer.hpp>

namespace pumice::detail {

/// Bytes that can be read from any position. `read` fills all of `out` or throws.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// A regular file; UserError when it is missing, something else, or cannot be read. Never waits for
/// the other end of a pipe.
std::unique_ptr<ByteSource> open_file(const std::filesystem::path& path);
/// A copy of `bytes`.
std::unique_ptr<ByteSource> copy_of(std::span<const std::byte> bytes);

/// All of a regular file.
Buffer<std::byte> read_file(const std::filesystem::path& path);

/// UserError, naming `what` ("scan.bin"), where `bytes` are more than this machine's memory: the
/// system may promise them and end the process as they are written.
void expect_room(std::uint64_t bytes, std::string_view what);

/// What `allocate` gives; where memory is out, the Error names `what`.
template <class Allocate> auto allocated_for(std::string_view what, Allocate&& allocate) {
  try {
    return allocate();
  } catch (const UserError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    throw Error(concatenate(what, ": ", error.what()));
  }
}

}   // namespace pumice::detail
