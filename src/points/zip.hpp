// Zip archives, as far as .npz files go: members stored or deflated, no encryption, one volume.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/core/buffer.hpp>

#include "points/formats.hpp"

namespace pumice::detail {

struct ZipMember {
  std::string name;
  std::uint64_t header = 0;     // where the member's own header begins
  std::uint64_t packed = 0;     // bytes in the archive
  std::uint64_t unpacked = 0;   // bytes once inflated, as declared
  std::uint32_t crc = 0;
  unsigned method = 0;   // 0 stored, 8 deflated
  unsigned flags = 0;
};

/// The archive's table of contents; UserError for members that overlap, repeat or lie outside.
std::vector<ZipMember> list_members(Bytes archive, std::string_view name);

/// The bytes of one member: never more than it declares, and its checksum holds.
Buffer<std::byte> read_member(Bytes archive, const ZipMember& member, std::string_view name);

}   // namespace pumice::detail
