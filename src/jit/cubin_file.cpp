// Encoding and checked decoding of compiled kernels.
#include "jit/cubin_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <pumice/core/error.hpp>

#include "jit/read_only_file.hpp"

namespace pumice::jit {
namespace {

constexpr std::array<char, 8> kMagic{'P', 'U', 'M', 'C', 'U', 'B', 'I', 'N'};
constexpr std::uint32_t kFormat = 1;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t zero = 0;
  Digest key{};
  std::uint64_t cubin_bytes = 0;
  std::uint64_t log_bytes = 0;
  Digest payload{};
};
static_assert(sizeof(Header) == 96);

}   // namespace

std::vector<std::byte> encode_cubin(const Digest& key, const CompileResult& compiled) {
  const auto log = std::as_bytes(std::span(compiled.log));
  std::vector<std::byte> bytes(sizeof(Header) + compiled.cubin.size() + log.size());
  const auto log_begin =
      std::copy(compiled.cubin.begin(), compiled.cubin.end(), bytes.begin() + sizeof(Header));
  std::copy(log.begin(), log.end(), log_begin);
  Header header;
  header.key = key;
  header.cubin_bytes = compiled.cubin.size();
  header.log_bytes = compiled.log.size();
  header.payload = digest_of(std::span(bytes).subspan(sizeof(Header)));
  std::memcpy(bytes.data(), &header, sizeof(Header));
  return bytes;
}

std::optional<CompileResult> decode_cubin(const Digest& key, std::span<const std::byte> bytes,
                                          std::string& problem) {
  const auto refuse = [&](std::string why) {
    problem = std::move(why);
    return std::nullopt;
  };
  Header header;
  if (bytes.size() < sizeof(Header)) return refuse("it is shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof(Header));
  const auto payload = bytes.subspan(sizeof(Header));
  if (header.magic != kMagic) return refuse("it is no compiled kernel");
  if (header.format != kFormat)
    return refuse("its format is " + std::to_string(header.format) + ", not 1");
  if (header.key != key) return refuse("it is the kernel of another source");
  if (header.cubin_bytes > payload.size() || header.log_bytes > payload.size() ||
      header.cubin_bytes + header.log_bytes != payload.size())
    return refuse("its size is not the one it names");
  if (digest_of(payload) != header.payload) return refuse("its content is damaged");

  const auto cubin = payload.first(header.cubin_bytes);
  const auto log = payload.subspan(header.cubin_bytes);
  CompileResult compiled;
  compiled.cubin.assign(cubin.begin(), cubin.end());
  compiled.log.assign(reinterpret_cast<const char*>(log.data()), log.size());
  compiled.kernels = parse_reports(compiled.log);
  return compiled;
}

std::optional<CompileResult> read_cubin(const std::filesystem::path& path, const Digest& key,
                                        std::string& problem) {
  const ReadOnlyFile file(path, ReadOnlyFile::Links::refused);
  problem = file.problem();
  if (!file.is_open() || !problem.empty()) return std::nullopt;
  if (file.owner() != ::geteuid() && file.owner() != 0) {
    problem = "it belongs to another user";
  } else if (file.size() > kMostCubinBytes) {
    problem = "it is larger than any compiled kernel";
  }
  if (!problem.empty()) return std::nullopt;
  const auto bytes = file.read(0, static_cast<std::size_t>(file.size()));
  return decode_cubin(key, bytes, problem);
}

}   // namespace pumice::jit
