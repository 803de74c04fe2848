// Encoding and checked decoding of bundles.
#include "jit/bundle_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <pumice/core/error.hpp>

#include "jit/cubin_file.hpp"

namespace pumice::jit {
namespace {

constexpr std::array<char, 8> kMagic{'P', 'U', 'M', 'B', 'U', 'N', 'D', 'L'};
constexpr std::uint32_t kFormat = 1;
constexpr std::uint32_t kMostKernels = 1u << 20;
constexpr std::uint64_t kMostLogBytes = std::uint64_t{16} << 20;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t kernels = 0;
  Digest tree{};
  Digest index{};   // of the fields above and the index
};
static_assert(sizeof(Header) == 80);
constexpr std::size_t kDigestedHeaderBytes = sizeof(Header) - sizeof(Digest);

struct IndexEntry {
  Digest source{};
  Digest stored{};
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t cubin_bytes = 0;
  std::uint64_t log_bytes = 0;
  std::array<char, 16> architecture{};
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::array<std::uint8_t, 12> zero{};
};
static_assert(sizeof(IndexEntry) == 128);

template <class T> std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Digest index_digest(const Header& header, std::span<const std::byte> index) {
  Sha256 digest;
  digest.add(bytes_of(header).first(kDigestedHeaderBytes));
  digest.add(index);
  return digest.finish();
}

/// "sm_90a" of sixteen characters with zeros behind; empty where it is no such name.
std::string architecture_in(const std::array<char, 16>& field) {
  const auto end = std::find(field.begin(), field.end(), '\0');
  const std::string name(field.begin(), end);
  const auto digits = name.find_first_not_of("0123456789", std::min<std::size_t>(3, name.size()));
  const std::size_t number_end = std::min(digits, name.size());
  const bool known = name.starts_with("sm_") && number_end >= 5 && number_end <= 7 &&
                     (number_end == name.size() ||
                      (number_end + 1 == name.size() && name.back() >= 'a' && name.back() <= 'z'));
  return known && end != field.end() ? name : std::string();
}

/// What is wrong with an entry of a file of `file_bytes` whose kernels begin at `begin`.
const char* complaint_about(const IndexEntry& entry, std::uint64_t begin,
                            std::uint64_t file_bytes) {
  if (entry.offset < begin || entry.offset > file_bytes ||
      entry.stored_bytes > file_bytes - entry.offset)
    return "a kernel lies outside of it";
  if (entry.cubin_bytes == 0 || entry.cubin_bytes > kMostCubinBytes ||
      entry.log_bytes > kMostLogBytes)
    return "a kernel in it has an impossible size";
  return architecture_in(entry.architecture).empty() ? "an architecture in it has no name"
                                                     : nullptr;
}

}   // namespace

std::optional<BundleFile> BundleFile::open(const std::filesystem::path& path,
                                           std::string& problem) {
  BundleFile bundle(ReadOnlyFile(path, ReadOnlyFile::Links::followed));
  problem = bundle.file_.problem();
  if (!bundle.file_.is_open() || !problem.empty()) return std::nullopt;
  const auto refuse = [&](std::string why) {
    problem = std::move(why);
    return std::nullopt;
  };
  if (bundle.file_.is_open_to_all()) return refuse("everyone may write it");
  Header header;
  const auto head = bundle.file_.read(0, sizeof(Header));
  if (head.size() < sizeof(Header)) return refuse("it is shorter than its header");
  std::memcpy(&header, head.data(), sizeof(Header));
  if (header.magic != kMagic) return refuse("it is no bundle of kernels");
  if (header.format != kFormat)
    return refuse("its format is " + std::to_string(header.format) + ", not 1");
  if (header.kernels > kMostKernels) return refuse("it names more kernels than there can be");
  const std::size_t index_bytes = header.kernels * sizeof(IndexEntry);
  const std::uint64_t begin = sizeof(Header) + index_bytes;
  if (begin > bundle.file_.size()) return refuse("it is shorter than its index");
  const auto index = bundle.file_.read(sizeof(Header), index_bytes);
  if (index.size() != index_bytes || index_digest(header, index) != header.index)
    return refuse("its index is damaged");
  if (header.tree != device_tree_digest())
    return refuse("its kernels were made from the device code of another version of Pumice");

  Digest previous{};
  for (std::size_t i = 0; i < header.kernels; ++i) {
    IndexEntry entry;
    std::memcpy(&entry, index.data() + i * sizeof(IndexEntry), sizeof(IndexEntry));
    if (const char* why = complaint_about(entry, begin, bundle.file_.size())) return refuse(why);
    if (i > 0 && entry.source <= previous) return refuse("its index is out of order");
    previous = entry.source;
    bundle.kernels_.push_back({.source = entry.source,
                               .architecture = architecture_in(entry.architecture),
                               .compiler = {entry.major, entry.minor},
                               .stored_bytes = entry.stored_bytes});
    bundle.places_.push_back({entry.stored, entry.offset, entry.cubin_bytes, entry.log_bytes});
  }
  return bundle;
}

std::optional<CompileResult> BundleFile::find(const Digest& source, int newest_major,
                                              std::string& problem) const {
  problem.clear();
  const auto found = std::lower_bound(
      kernels_.begin(), kernels_.end(), source,
      [](const BundledKernel& kernel, const Digest& wanted) { return kernel.source < wanted; });
  if (found == kernels_.end() || found->source != source || found->compiler.major > newest_major)
    return std::nullopt;
  const Place& place = places_[static_cast<std::size_t>(found - kernels_.begin())];
  const auto stored = file_.read(place.offset, static_cast<std::size_t>(found->stored_bytes));
  if (stored.size() != found->stored_bytes || digest_of(stored) != place.stored) {
    problem = "a kernel in it is damaged";
    return std::nullopt;
  }
  CompileResult compiled;
  compiled.cubin.resize(static_cast<std::size_t>(place.cubin_bytes + place.log_bytes));
  uLongf size = compiled.cubin.size();
  const int result =
      uncompress(reinterpret_cast<Bytef*>(compiled.cubin.data()), &size,
                 reinterpret_cast<const Bytef*>(stored.data()), static_cast<uLong>(stored.size()));
  if (result != Z_OK || size != compiled.cubin.size()) {
    problem = "a kernel in it does not unpack";
    return std::nullopt;
  }
  const auto log = std::span(compiled.cubin).subspan(static_cast<std::size_t>(place.cubin_bytes));
  compiled.log.assign(reinterpret_cast<const char*>(log.data()), log.size());
  compiled.cubin.resize(static_cast<std::size_t>(place.cubin_bytes));
  compiled.kernels = parse_reports(compiled.log);
  return compiled;
}

std::vector<std::byte> BundleWriter::pack(const CompileResult& compiled) {
  std::vector<std::byte> plain = compiled.cubin;
  const auto log = std::as_bytes(std::span(compiled.log));
  plain.insert(plain.end(), log.begin(), log.end());
  uLongf size = compressBound(static_cast<uLong>(plain.size()));
  std::vector<std::byte> packed(size);
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                               reinterpret_cast<const Bytef*>(plain.data()),
                               static_cast<uLong>(plain.size()), Z_BEST_COMPRESSION);
  PUMICE_ENSURES(result == Z_OK, "zlib does not deflate: ", result);
  packed.resize(size);
  return packed;
}

void BundleWriter::add(const BundledKernel& kernel, const CompileResult& compiled,
                       std::vector<std::byte> packed) {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), kernel.source,
      [](const Entry& entry, const Digest& wanted) { return entry.kernel.source < wanted; });
  PUMICE_ENSURES(at == entries_.end() || at->kernel.source != kernel.source,
                 "a kernel is bundled twice for ", kernel.architecture);
  entries_.insert(at, {kernel, compiled.cubin.size(), compiled.log.size(), std::move(packed)});
}

std::vector<std::byte> BundleWriter::finish() const {
  std::vector<IndexEntry> index;
  std::uint64_t offset = sizeof(Header) + entries_.size() * sizeof(IndexEntry);
  for (const Entry& entry : entries_) {
    IndexEntry& row = index.emplace_back();
    const std::string& name = entry.kernel.architecture;
    PUMICE_ENSURES(name.size() < row.architecture.size(), "architecture ", name);
    row.source = entry.kernel.source;
    row.stored = digest_of(entry.packed);
    row.offset = offset;
    row.stored_bytes = entry.packed.size();
    row.cubin_bytes = entry.cubin_bytes;
    row.log_bytes = entry.log_bytes;
    std::copy(name.begin(), name.end(), row.architecture.begin());
    row.major = static_cast<std::uint16_t>(entry.kernel.compiler.major);
    row.minor = static_cast<std::uint16_t>(entry.kernel.compiler.minor);
    offset += entry.packed.size();
  }
  const auto index_bytes = std::as_bytes(std::span(index));
  Header header;
  header.kernels = static_cast<std::uint32_t>(entries_.size());
  header.tree = device_tree_digest();
  header.index = index_digest(header, index_bytes);

  std::vector<std::byte> bytes(static_cast<std::size_t>(offset));
  auto end = bytes.begin();
  const auto append = [&](std::span<const std::byte> part) {
    end = std::copy(part.begin(), part.end(), end);
  };
  append(bytes_of(header));
  append(index_bytes);
  for (const Entry& entry : entries_)
    append(entry.packed);
  return bytes;
}

}   // namespace pumice::jit
