// Which bytes of device memory somebody wrote. The fake compiler has the host's compiler put a call
// before every access of a kernel (-fsanitize=kernel-address); those calls lead here.
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "fake_driver/fake.hpp"
#include "support/device_emulator.hpp"

namespace pumice::fake {
namespace {

struct Shadow {
  std::mutex mutex;
  std::map<std::uintptr_t, std::vector<bool>> blocks;   // by address: whether each byte is written
  std::uint64_t bad_reads = 0;
  std::string first;
};

Shadow& shadow() {
  static auto& all = *new Shadow;
  return all;
}

/// Calls body(bits, first byte, behind the last) for what lies in a block.
template <class Body> void in_block(const void* data, std::size_t bytes, const Body& body) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  Shadow& all = shadow();
  const std::lock_guard lock(all.mutex);
  auto found = all.blocks.upper_bound(address);
  if (found == all.blocks.begin()) return;
  --found;
  const std::size_t first = address - found->first;
  if (first < found->second.size())
    body(found->second, first, std::min(first + bytes, found->second.size()));
}

void note_written(const void* data, std::size_t bytes) {
  in_block(data, bytes, [](std::vector<bool>& written, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      written[i] = true;
  });
}

void check_read(const void* data, std::size_t bytes) {
  in_block(data, bytes, [](const std::vector<bool>& written, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      if (written[i]) continue;
      Shadow& all = shadow();
      if (all.bad_reads++ == 0) {
        all.first = "byte " + std::to_string(i) + " of " + std::to_string(written.size()) +
                    " in its block of memory";
      }
      return;
    }
  });
}

}   // namespace

bool tracks_memory() {
  static const bool tracks = [] {
    if (behaviour() != "initcheck") return false;
    test::listen_to_reads(check_read);
    return true;
  }();
  return tracks;
}

void track_block(const void* data, std::size_t bytes) {
  if (!tracks_memory()) return;
  Shadow& all = shadow();
  const std::lock_guard lock(all.mutex);
  all.blocks[reinterpret_cast<std::uintptr_t>(data)].assign(bytes, false);
}

void drop_block(const void* data) {
  if (!tracks_memory()) return;
  Shadow& all = shadow();
  const std::lock_guard lock(all.mutex);
  all.blocks.erase(reinterpret_cast<std::uintptr_t>(data));
}

void mark_written(const void* data, std::size_t bytes) {
  if (tracks_memory()) note_written(data, bytes);
}

void mark_copied(const void* to, const void* from, std::size_t bytes) {
  if (!tracks_memory()) return;
  std::vector<bool> written(bytes, true);   // on the host all is
  in_block(from, bytes, [&](const std::vector<bool>& bits, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      written[i - first] = bits[i];
  });
  in_block(to, bytes, [&](std::vector<bool>& bits, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      bits[i] = written[i - first];
  });
}

std::string take_bad_reads() {
  if (!tracks_memory()) return {};
  Shadow& all = shadow();
  const std::lock_guard lock(all.mutex);
  if (all.bad_reads == 0) return {};
  std::string said = std::to_string(all.bad_reads) +
                     " reads of memory that nobody wrote, the first of " + all.first;
  all.bad_reads = 0;
  return said;
}

}   // namespace pumice::fake

// Under a sanitizer its own runtime has functions of these names, and the fake compiler asks for
// none.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the compiler's own names
extern "C" {
#define PUMICE_ACCESS(bytes)                             \
  void __asan_load##bytes##_noabort(const void* data) {  \
    pumice::fake::check_read(data, bytes);               \
  }                                                      \
  void __asan_store##bytes##_noabort(const void* data) { \
    pumice::fake::note_written(data, bytes);             \
  }
PUMICE_ACCESS(1)
PUMICE_ACCESS(2)
PUMICE_ACCESS(4)
PUMICE_ACCESS(8)
PUMICE_ACCESS(16)
#undef PUMICE_ACCESS
void __asan_loadN_noabort(const void* data, std::size_t bytes) {
  pumice::fake::check_read(data, bytes);
}
void __asan_storeN_noabort(const void* data, std::size_t bytes) {
  pumice::fake::note_written(data, bytes);
}
void __asan_handle_no_return() {}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
#endif
