// What the instructions behind the tile kernels do, lane by lane.
#include <bit>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include <pumice/instructions_host.h>
#include <pumice/core/half.hpp>

#include "support/device_emulator.hpp"

namespace pumice::emulator {
namespace {

std::byte* shared_memory(uint32_t address) {
  return static_cast<std::byte*>(launch_shared()) + address;
}

struct Copy {
  uint32_t to;
  const void* from;
  int bytes;
  bool there;

  void run() const {
    if (there) {
      std::memcpy(shared_memory(to), from, static_cast<std::size_t>(bytes));
    } else {
      std::memset(shared_memory(to), 0, static_cast<std::size_t>(bytes));
    }
  }
};

/// The copies of one thread that nobody has waited for.
struct Copies {
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;
};

Copies& copies_of_thread() {
  thread_local std::vector<Copies> all(1024);
  return all[static_cast<std::size_t>(thread_index())];
}

float half_of(ElementType type, uint32_t word, int which) {
  return widen_half(type, static_cast<uint16_t>(word >> (16 * which)));
}

/// Channels of a 32-bit word: two of a half type, one of tf32.
float channel_of(ElementType type, uint32_t word, int which) {
  return type == ElementType::tf32 ? std::bit_cast<float>(word) : half_of(type, word, which);
}

}   // namespace

uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(static_cast<const std::byte*>(pointer) -
                               static_cast<const std::byte*>(launch_shared()));
}

void store_shared(uint32_t to, uint16_t value) {
  std::memcpy(shared_memory(to), &value, sizeof(value));
}

void copy_async(uint32_t to, const void* from, int bytes, bool there) {
  if (there) test::note_read(from, static_cast<std::size_t>(bytes));
  copies_of_thread().open.push_back({to, from, bytes, there});
}

void copy_commit() {
  Copies& copies = copies_of_thread();
  copies.groups.push_back(std::move(copies.open));
  copies.open.clear();
}

void copy_wait(int groups) {
  Copies& copies = copies_of_thread();
  while (copies.groups.size() > static_cast<std::size_t>(groups)) {
    for (const Copy& copy : copies.groups.front())
      copy.run();
    copies.groups.pop_front();
  }
}

uint32_t pack_half2(ElementType type, float low, float high) {
  const auto bits = [&](float value) {
    return type == ElementType::f16 ? std::bit_cast<uint16_t>(to_half(value))
                                    : std::bit_cast<uint16_t>(to_bfloat16(value));
  };
  return static_cast<uint32_t>(bits(low)) | static_cast<uint32_t>(bits(high)) << 16;
}

float widen_half(ElementType type, uint16_t bits) {
  return type == ElementType::f16 ? to_float(std::bit_cast<Half>(bits))
                                  : to_float(std::bit_cast<BFloat16>(bits));
}

uint32_t round_to_tf32(uint32_t bits) {
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;   // infinities and NaN
  return (bits + 0x1000u) & ~0x1fffu;
}

// Lane 8m + r gives the address of row r of matrix m; lane l gets of each matrix the elements
// 2(l % 4) and 2(l % 4) + 1 of row l / 4, or of column l / 4 when transposed.
void load_matrices(uint32_t (&matrix)[4], uint32_t address, bool transposed) {
  const uint64_t* addresses = exchange_in_warp(address, "load_matrices", Where::current());
  const int lane = thread_index() % 32;
  for (int m = 0; m < 4; ++m) {
    uint16_t element[2];
    for (int i = 0; i < 2; ++i) {
      const int row = transposed ? lane % 4 * 2 + i : lane / 4;
      const int column = transposed ? lane / 4 : lane % 4 * 2 + i;
      const auto start = static_cast<uint32_t>(addresses[m * 8 + row]);
      std::memcpy(&element[i], shared_memory(start + static_cast<uint32_t>(column) * 2), 2);
    }
    matrix[m] = element[0] | static_cast<uint32_t>(element[1]) << 16;
  }
}

// m16n8k16 (f16, bf16) and m16n8k8 (tf32): the four lanes of a quad hold a row of a, the lanes of
// equal l / 4 a column of b.
void multiply(ElementType operand, float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
              uint32_t b1) {
  const auto share = [](uint32_t first, uint32_t second, uint64_t(&all)[32]) {
    std::memcpy(all, exchange_in_warp(first | uint64_t{second} << 32, "multiply", Where::current()),
                sizeof(all));
  };
  uint64_t a_low[32], a_high[32], b[32];
  share(a[0], a[1], a_low);    // channels of the first 16 bytes: rows l / 4, l / 4 + 8
  share(a[2], a[3], a_high);   // of the second
  share(b0, b1, b);
  const int lane = thread_index() % 32;
  const int channels = operand == ElementType::tf32 ? 1 : 2;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4, column = lane % 4 * 2 + i % 2;
    const int shift = i < 2 ? 0 : 32;   // rows 8 … 15 are in the second register of each pair
    for (int quad = 0; quad < 4; ++quad) {
      const int from_a = row * 4 + quad, from_b = column * 4 + quad;
      for (int c = 0; c < channels; ++c) {
        sum[i] += channel_of(operand, static_cast<uint32_t>(a_low[from_a] >> shift), c) *
                  channel_of(operand, static_cast<uint32_t>(b[from_b]), c);
        sum[i] += channel_of(operand, static_cast<uint32_t>(a_high[from_a] >> shift), c) *
                  channel_of(operand, static_cast<uint32_t>(b[from_b] >> 32), c);
      }
    }
  }
}

}   // namespace pumice::emulator
