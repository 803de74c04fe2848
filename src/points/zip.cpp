// A zip archive is read from its end: the end record names the directory, the directory the
// members. Sizes and offsets of 2^32 - 1 mean that a 64-bit record holds the true ones.
#include "points/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/file.hpp"
#include "points/text.hpp"

namespace pumice::detail {
namespace {

constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kEnd64Bytes = 56;
constexpr std::uint64_t kLocator64Bytes = 20;
constexpr std::uint64_t kEntryBytes = 46;
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint32_t kFull16 = 0xffffu;
constexpr std::uint32_t kFull32 = 0xffffffffu;
constexpr std::uint64_t kLargestGrowth = 1032;                      // of deflate
constexpr std::uint64_t kLargestMember = std::uint64_t{16} << 30;   // 16 GiB of points
// Recorded scans deflate to a half, grids of made-up points to a tenth, arrays of voxel indices to
// 1/400. So up to 256 MiB, 16 million points and a few seconds of reading, anything that deflate
// can do is read; a larger member has to come from at least a hundredth of its size. A megabyte
// then costs 256 MiB at most, and not the GiB that deflate could make of it.
constexpr std::uint64_t kAnyGrowth = std::uint64_t{256} << 20;
constexpr std::uint64_t kUsualGrowth = 100;

/// Little-endian numbers at any place of the archive; a place outside is an error, not a read.
class Archive {
 public:
  Archive(Bytes bytes, std::string_view name) : bytes_(bytes), name_(name) {}
  std::uint64_t size() const { return bytes_.size(); }
  Bytes slice(std::uint64_t at, std::uint64_t length) const {
    PUMICE_EXPECTS(at <= size() && length <= size() - at, name_,
                   ": a record of the archive lies outside the file; it is truncated or damaged");
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  }
  std::uint64_t number(std::uint64_t at, std::uint64_t width) const {
    const Bytes field = slice(at, width);
    std::uint64_t value = 0;
    for (std::size_t i = field.size(); i-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(field[i]);
    }
    return value;
  }
  std::uint32_t u16(std::uint64_t at) const { return static_cast<std::uint32_t>(number(at, 2)); }
  std::uint32_t u32(std::uint64_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  std::uint64_t u64(std::uint64_t at) const { return number(at, 8); }
  bool has_signature(std::uint64_t at, std::uint32_t signature) const {
    return at <= size() && size() - at >= 4 && u32(at) == signature;
  }
  std::string_view name() const { return name_; }

 private:
  Bytes bytes_;
  std::string_view name_;
};

constexpr std::uint32_t kEndSignature = 0x06054b50u;
constexpr std::uint32_t kEnd64Signature = 0x06064b50u;
constexpr std::uint32_t kLocator64Signature = 0x07064b50u;
constexpr std::uint32_t kEntrySignature = 0x02014b50u;
constexpr std::uint32_t kLocalSignature = 0x04034b50u;

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The end record stands last, followed only by a comment of at most 65,535 bytes.
std::uint64_t find_end(const Archive& archive) {
  PUMICE_EXPECTS(archive.size() >= kEndBytes, archive.name(), ": is not a zip archive");
  const std::uint64_t last = archive.size() - kEndBytes;
  const std::uint64_t first = last > kFull16 ? last - kFull16 : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (archive.has_signature(at, kEndSignature) &&
        at + kEndBytes + archive.u16(at + 20) == archive.size()) {
      return at;
    }
  }
  raise_user(archive.name(), ": has no end record; it is not a zip archive or is truncated");
}

Directory find_directory(const Archive& archive) {
  const std::uint64_t end = find_end(archive);
  Directory directory{archive.u16(end + 10), archive.u32(end + 16), archive.u32(end + 12)};
  const bool full =
      directory.entries == kFull16 || directory.offset == kFull32 || directory.bytes == kFull32;
  if (full && end >= kLocator64Bytes &&
      archive.has_signature(end - kLocator64Bytes, kLocator64Signature)) {
    const std::uint64_t at = archive.u64(end - kLocator64Bytes + 8);
    archive.slice(at, kEnd64Bytes);
    PUMICE_EXPECTS(archive.has_signature(at, kEnd64Signature), archive.name(),
                   ": its 64-bit end record is damaged");
    directory = {archive.u64(at + 32), archive.u64(at + 48), archive.u64(at + 40)};
  }
  archive.slice(directory.offset, directory.bytes);
  PUMICE_EXPECTS(directory.entries <= directory.bytes / kEntryBytes, archive.name(), ": announces ",
                 directory.entries, " members in a directory of ", directory.bytes,
                 " bytes; it is damaged");
  return directory;
}

/// Replaces sizes of 2^32 - 1 by those of the 64-bit extra field, which lists just the missing
/// ones.
void apply_extra(const Archive& archive, std::uint64_t at, std::uint64_t length,
                 ZipMember& member) {
  const std::uint64_t end = at + length;
  while (end - at >= 4) {
    const std::uint32_t id = archive.u16(at);
    const std::uint64_t bytes = archive.u16(at + 2);
    at += 4;
    PUMICE_EXPECTS(bytes <= end - at, archive.name(), ": an extra field of member ",
                   excerpt(member.name), " is damaged");
    if (id == 1) {
      std::uint64_t field = at;
      for (std::uint64_t* value : {&member.unpacked, &member.packed, &member.header}) {
        if (*value != kFull32) continue;
        PUMICE_EXPECTS(field + 8 <= at + bytes, archive.name(), ": an extra field of member ",
                       excerpt(member.name), " is damaged");
        *value = archive.u64(field);
        field += 8;
      }
    }
    at += bytes;
  }
}

/// The entry at `at`, which is moved behind it.
ZipMember parse_entry(const Archive& archive, std::uint64_t& at) {
  archive.slice(at, kEntryBytes);
  PUMICE_EXPECTS(archive.has_signature(at, kEntrySignature), archive.name(),
                 ": its directory is damaged");
  ZipMember member;
  member.flags = archive.u16(at + 8);
  member.method = archive.u16(at + 10);
  member.crc = archive.u32(at + 16);
  member.packed = archive.u32(at + 20);
  member.unpacked = archive.u32(at + 24);
  const std::uint64_t name_bytes = archive.u16(at + 28);
  const std::uint64_t extra_bytes = archive.u16(at + 30);
  const std::uint64_t comment_bytes = archive.u16(at + 32);
  member.header = archive.u32(at + 42);
  member.name = as_text(archive.slice(at + kEntryBytes, name_bytes));
  archive.slice(at + kEntryBytes + name_bytes, extra_bytes);
  apply_extra(archive, at + kEntryBytes + name_bytes, extra_bytes, member);
  at += kEntryBytes + name_bytes + extra_bytes + comment_bytes;
  return member;
}

/// Members must lie before the directory, apart from each other, under different names.
void check_members(const Archive& archive, const std::vector<ZipMember>& members,
                   std::uint64_t directory) {
  std::vector<const ZipMember*> order;
  for (const ZipMember& member : members)
    order.push_back(&member);
  std::sort(order.begin(), order.end(),
            [](const ZipMember* a, const ZipMember* b) { return a->header < b->header; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint64_t limit = i + 1 < order.size() ? order[i + 1]->header : directory;
    const std::uint64_t begin = order[i]->header;
    const std::uint64_t room = begin <= limit ? limit - begin : 0;
    PUMICE_EXPECTS(
        limit <= directory && room >= kLocalBytes && order[i]->packed <= room - kLocalBytes,
        archive.name(), ": member ", excerpt(order[i]->name),
        " overlaps another one or lies outside the file; it is damaged");
  }
  std::sort(order.begin(), order.end(),
            [](const ZipMember* a, const ZipMember* b) { return a->name < b->name; });
  const auto twin =
      std::adjacent_find(order.begin(), order.end(),
                         [](const ZipMember* a, const ZipMember* b) { return a->name == b->name; });
  PUMICE_EXPECTS(twin == order.end(), archive.name(), ": has two members named ",
                 twin == order.end() ? std::string() : excerpt((*twin)->name));
}

Buffer<std::byte> inflate_member(Bytes packed, const ZipMember& member, std::string_view name) {
  Buffer<std::byte> out(static_cast<std::int64_t>(member.unpacked));
  z_stream stream{};
  PUMICE_ENSURES(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib does not start");
  constexpr std::size_t kStep = std::size_t{1} << 30;   // zlib counts in 32 bits
  std::size_t read = 0;
  std::size_t written = 0;
  int status = Z_OK;
  std::byte nothing{};   // zlib wants a valid pointer even where there is no room
  while (status == Z_OK) {
    const std::size_t in = std::min(kStep, packed.size() - read);
    const std::size_t room = std::min(kStep, static_cast<std::size_t>(out.size()) - written);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data())) + read;
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(room == 0 ? &nothing : out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += room - stream.avail_out;
    if (in == stream.avail_in && room == stream.avail_out && status == Z_OK) status = Z_BUF_ERROR;
  }
  inflateEnd(&stream);
  PUMICE_EXPECTS(status == Z_STREAM_END && written == static_cast<std::size_t>(out.size()), name,
                 ": member ", excerpt(member.name), " does not inflate to the ", member.unpacked,
                 " bytes it declares; it is damaged");
  return out;
}

std::uint32_t checksum(Bytes bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}   // namespace

std::vector<ZipMember> list_members(Bytes bytes, std::string_view name) {
  const Archive archive(bytes, name);
  const Directory directory = find_directory(archive);
  std::vector<ZipMember> members;
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.entries; ++i)
    members.push_back(parse_entry(archive, at));
  check_members(archive, members, directory.offset);
  return members;
}

Buffer<std::byte> read_member(Bytes bytes, const ZipMember& member, std::string_view name) {
  const Archive archive(bytes, name);
  PUMICE_EXPECTS((member.flags & 1u) == 0, name, ": member ", excerpt(member.name),
                 " is encrypted; store it openly");
  PUMICE_EXPECTS(member.method == 0 || member.method == 8, name, ": member ", excerpt(member.name),
                 " is compressed by method ", member.method,
                 "; only stored and deflated ones are known");
  PUMICE_EXPECTS(archive.has_signature(member.header, kLocalSignature), name, ": member ",
                 excerpt(member.name), " is damaged");
  archive.slice(member.header, kLocalBytes);
  const std::uint64_t data = member.header + kLocalBytes + archive.u16(member.header + 26) +
                             archive.u16(member.header + 28);
  const Bytes packed = archive.slice(data, member.packed);
  const std::uint64_t growth = member.method == 0 ? 1 : kLargestGrowth;
  PUMICE_EXPECTS(member.unpacked <= kLargestMember && member.unpacked <= member.packed * growth,
                 name, ": member ", excerpt(member.name), " declares ", member.unpacked,
                 " bytes from ", member.packed, ", which cannot be");
  PUMICE_EXPECTS(member.unpacked <= kAnyGrowth || member.unpacked / kUsualGrowth <= member.packed,
                 name, ": member ", excerpt(member.name), " would grow from ", member.packed,
                 " to ", member.unpacked, " bytes; beyond ", kAnyGrowth, " no more than ",
                 kUsualGrowth, "-fold is inflated, so store it as .npy if it is no mistake");
  const std::string what = concatenate(name, ": member ", excerpt(member.name));
  expect_room(member.unpacked, what);
  Buffer<std::byte> out;
  if (member.method == 0) {
    PUMICE_EXPECTS(member.packed == member.unpacked, name, ": member ", excerpt(member.name),
                   " is stored, yet declares ", member.unpacked, " bytes in ", member.packed);
    out = Buffer<std::byte>(static_cast<std::int64_t>(packed.size()));
    std::copy(packed.begin(), packed.end(), out.span().begin());
  } else {
    out = allocated_for(what, [&] { return inflate_member(packed, member, name); });
  }
  PUMICE_EXPECTS(checksum(out.span()) == member.crc, name, ": the checksum of member ",
                 excerpt(member.name), " is wrong; it is damaged");
  return out;
}

}   // namespace pumice::detail
