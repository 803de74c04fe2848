// What barriers in shared memory and warpgroup products do.
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include <pumice/instructions_host.h>

#include "support/device_emulator.hpp"

namespace pumice::emulator {
namespace {

std::byte* shared_memory(uint32_t address) {
  return static_cast<std::byte*>(launch_shared()) + address;
}

/// The eight bytes of a barrier.
struct Barrier {
  std::int16_t pending;   // arrivals this phase still needs
  std::int16_t count;
  std::int32_t bytes_and_phase;   // bytes still expected · 2 + parity
};
static_assert(sizeof(Barrier) == 8);

/// Changes a barrier and ends its phase when nothing is missing any more.
void change(uint32_t address, int arrivals, int bytes) {
  Barrier barrier;
  std::memcpy(&barrier, shared_memory(address), sizeof(barrier));
  if (barrier.pending < arrivals)
    throw std::runtime_error("a barrier has more arrivals in a phase than it was made for");
  barrier.pending = static_cast<std::int16_t>(barrier.pending - arrivals);
  barrier.bytes_and_phase += 2 * bytes;
  if (barrier.pending == 0 && barrier.bytes_and_phase / 2 == 0) {
    barrier.pending = barrier.count;
    barrier.bytes_and_phase ^= 1;
  }
  std::memcpy(shared_memory(address), &barrier, sizeof(barrier));
  made_progress();
}

struct Product {
  ElementType operand;
  bool across;
  int columns;
  float* sums;
  uint64_t a, b;
};

struct Products {
  std::vector<Product> open;
  std::deque<std::vector<Product>> groups;
};

Products& products_of_thread() {
  thread_local std::vector<Products> all(1024);
  return all[static_cast<std::size_t>(thread_index())];
}

/// The swizzle of an address: bits 4 … exchanged with those of the row in the pattern. Patterns
/// repeat every 8 rows of their width, so the address alone tells the row.
uint32_t swizzled(uint32_t address, int code) {
  const uint32_t bits = code == 1 ? 7 : code == 2 ? 3 : 1;
  return address ^ ((address >> 7 & bits) << 4);
}

/// Element (row, k) of an operand: row along M or N, k along the channels of one instruction.
uint32_t element_address(uint64_t descriptor, bool across, int element_bytes, int row, int k) {
  const auto start = static_cast<uint32_t>(descriptor & 0x3fff) << 4;
  const auto leading = static_cast<uint32_t>(descriptor >> 16 & 0x3fff) << 4;
  const auto stride = static_cast<uint32_t>(descriptor >> 32 & 0x3fff) << 4;
  const auto code = static_cast<int>(descriptor >> 62);
  const uint32_t width = code == 1 ? 128 : code == 2 ? 64 : 32;
  const auto r = static_cast<uint32_t>(row), c = static_cast<uint32_t>(k);
  const auto bytes = static_cast<uint32_t>(element_bytes);
  const uint32_t plain =
      across ? start + c / 8 * stride + c % 8 * width + r / 64 * leading + r % 64 * bytes
             : start + r / 8 * stride + r % 8 * width + c * bytes;
  return swizzled(plain, code);
}

float element(const Product& product, uint64_t descriptor, int row, int k) {
  const int bytes = element_bytes(product.operand);
  const std::byte* at = shared_memory(element_address(descriptor, product.across, bytes, row, k));
  if (bytes == 4) {   // the tensor core reads the upper 19 bits
    uint32_t bits;
    std::memcpy(&bits, at, 4);
    return value_of<float>(bits & ~0x1fffu);
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return widen_half(product.operand, bits);
}

void run(const Product& product) {
  const int thread = thread_index() % 128, lane = thread % 32, warp = thread / 32;
  const int depth = 32 / element_bytes(product.operand);
  for (int i = 0; i < 2; ++i) {
    const int row = warp * 16 + lane / 4 + 8 * i;
    float a[16];
    for (int k = 0; k < depth; ++k)
      a[k] = element(product, product.a, row, k);
    for (int j = 0; j < product.columns / 8; ++j) {
      for (int c = 0; c < 2; ++c) {
        float& sum = product.sums[j * 4 + i * 2 + c];
        for (int k = 0; k < depth; ++k)
          sum += a[k] * element(product, product.b, j * 8 + lane % 4 * 2 + c, k);
      }
    }
  }
}

}   // namespace

void barrier_init(uint32_t barrier, int count) {
  const Barrier fresh{static_cast<std::int16_t>(count), static_cast<std::int16_t>(count), 0};
  std::memcpy(shared_memory(barrier), &fresh, sizeof(fresh));
}

void barrier_arrive(uint32_t barrier) {
  change(barrier, 1, 0);
}

void barrier_arrive_expecting(uint32_t barrier, int bytes) {
  change(barrier, 0, bytes);
  change(barrier, 1, 0);
}

void barrier_arrive_after_copies(uint32_t barrier) {
  copy_commit();
  copy_wait(0);
  change(barrier, 1, 0);
}

void barrier_wait(uint32_t barrier, uint32_t parity) {
  for (;;) {
    Barrier now;
    std::memcpy(&now, shared_memory(barrier), sizeof(now));
    if ((static_cast<uint32_t>(now.bytes_and_phase) & 1) != parity) return;
    pause("a barrier in shared memory whose phase does not end");
  }
}

void copy_bulk(uint32_t to, const void* from, int bytes, uint32_t barrier) {
  if (to % 16 != 0 || bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
    throw std::runtime_error("bulk copies take addresses and sizes that are multiples of 16");
  test::note_read(from, static_cast<std::size_t>(bytes));
  std::memcpy(shared_memory(to), from, static_cast<std::size_t>(bytes));
  change(barrier, 0, -bytes);
}

// Counts arrivals for each number; a generation tells a waiter that its own is complete.
void warps_sync(int number, int threads) {
  struct NamedBarrier {
    int arrived = 0;
    int generation = 0;
  };
  thread_local NamedBarrier barriers[16];
  NamedBarrier& barrier = barriers[number];
  const int generation = barrier.generation;
  made_progress();
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.generation;
    return;
  }
  while (barrier.generation == generation)
    pause("a barrier of some warps that others do not reach");
}

void wgmma(ElementType operand, bool across, int columns, float* sums, uint64_t a, uint64_t b) {
  products_of_thread().open.push_back({operand, across, columns, sums, a, b});
}

void wgmma_commit() {
  Products& products = products_of_thread();
  products.groups.push_back(std::move(products.open));
  products.open.clear();
}

// Warp-wide: when one lane goes on, all 32 have their sums.
void wgmma_wait(int groups) {
  Products& products = products_of_thread();
  while (products.groups.size() > static_cast<std::size_t>(groups)) {
    for (const Product& product : products.groups.front())
      run(product);
    products.groups.pop_front();
  }
  exchange_in_warp(0, "wgmma_wait", Where::current());
}

}   // namespace pumice::emulator
