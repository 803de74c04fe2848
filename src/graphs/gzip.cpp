// Goes over the bytes twice: to learn how many come out, then to keep them. What a gzip file says
// of its size is not taken at its word.
#include "graphs/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include <pumice/core/error.hpp>

#include "core/file.hpp"

namespace pumice::detail {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kStep = std::size_t{1} << 30;   // zlib counts in 32 bits
// Lists of edges deflate to a fifth up to a twentieth. Up to 256 MiB anything that deflate can do
// is taken; beyond, a hundredfold.
constexpr std::uint64_t kAnyGrowth = std::uint64_t{256} << 20;
constexpr std::uint64_t kUsualGrowth = 100;

bool begins_gzip(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

class Inflater {
 public:
  Inflater(Bytes packed, std::string_view name) : packed_(packed), name_(name) {
    PUMICE_ENSURES(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK, "zlib does not start");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  /// Fills `out` as far as there is something; how many bytes that were.
  std::size_t read(std::span<std::byte> out) {
    std::size_t written = 0;
    while (!done_ && written < out.size()) {
      const std::size_t in = std::min(kStep, packed_.size() - read_);
      const std::size_t room = std::min(kStep, out.size() - written);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed_.data())) + read_;
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + written);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      read_ += in - stream_.avail_in;
      written += room - stream_.avail_out;
      const bool stands_still = in == stream_.avail_in && room == stream_.avail_out;
      PUMICE_EXPECTS(status == Z_STREAM_END || (status == Z_OK && !stands_still), name_,
                     ": does not inflate beyond byte ", read_, " of ", packed_.size(),
                     "; it was cut off or is damaged");
      if (status == Z_STREAM_END) begin_next_part();
    }
    return written;
  }

 private:
  void begin_next_part() {
    done_ = read_ == packed_.size();
    PUMICE_EXPECTS(done_ || begins_gzip(packed_.subspan(read_)), name_, ": ",
                   packed_.size() - read_, " bytes behind what gzip wrote; it is damaged");
    if (!done_) PUMICE_ENSURES(inflateReset(&stream_) == Z_OK, "zlib does not start again");
  }

  z_stream stream_{};
  Bytes packed_;
  std::string_view name_;
  std::size_t read_ = 0;
  bool done_ = false;
};

std::uint64_t inflated_size(Bytes packed, std::string_view name) {
  std::array<std::byte, 65536> scratch{};
  Inflater inflater(packed, name);
  std::uint64_t size = 0;
  while (const std::size_t more = inflater.read(scratch)) {
    size += more;
    PUMICE_EXPECTS(size <= kAnyGrowth || size / kUsualGrowth <= packed.size(), name,
                   ": would grow from ", packed.size(), " bytes to more than ", size, "; beyond ",
                   kAnyGrowth, " no more than ", kUsualGrowth,
                   "-fold is inflated, so inflate it with gunzip if it is no mistake");
  }
  return size;
}

}   // namespace

std::optional<Buffer<std::byte>> inflate_gzip(std::span<const std::byte> bytes,
                                              std::string_view name) {
  if (!begins_gzip(bytes)) return std::nullopt;
  const std::uint64_t size = inflated_size(bytes, name);
  expect_room(size, name);
  auto out =
      allocated_for(name, [&] { return Buffer<std::byte>(static_cast<std::int64_t>(size)); });
  Inflater inflater(bytes, name);
  PUMICE_ENSURES(inflater.read(out.span()) == size, "inflates to another size the second time");
  return out;
}

}   // namespace pumice::detail
