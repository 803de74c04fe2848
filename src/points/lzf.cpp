// A stream of commands. 000lllll: l + 1 bytes follow, literally. nnnooooo oooooooo: copy n + 2
// bytes from o + 1 bytes back; n = 7 means that another length byte stands before the low offset
// byte.
#include "points/lzf.hpp"

#include <algorithm>

namespace pumice::detail {

bool lzf_decompress(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t read = 0;
  std::size_t written = 0;
  while (read < in.size()) {
    const auto command = std::to_integer<std::size_t>(in[read++]);
    if (command < 32) {
      const std::size_t length = command + 1;
      if (length > in.size() - read || length > out.size() - written) return false;
      std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(read), length,
                  out.begin() + static_cast<std::ptrdiff_t>(written));
      read += length;
      written += length;
      continue;
    }
    std::size_t length = command >> 5;
    if (length == 7) {
      if (read == in.size()) return false;
      length += std::to_integer<std::size_t>(in[read++]);
    }
    length += 2;
    if (read == in.size()) return false;
    const std::size_t back = ((command & 31) << 8 | std::to_integer<std::size_t>(in[read++])) + 1;
    if (back > written || length > out.size() - written) return false;
    // Byte by byte: source and target may overlap, which is how runs are stored.
    for (; length > 0; --length, ++written)
      out[written] = out[written - back];
  }
  return written == out.size();
}

}   // namespace pumice::detail
