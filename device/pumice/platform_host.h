// Device intrinsics on the host: questions to the emulator that runs the kernel. See platform.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <source_location>
#include <type_traits>

#include <pumice/shared/types.h>

#if !defined(PUMICE_KERNEL)   // tests/fake_driver/compiler.cpp wants kernels that it can find
#define PUMICE_KERNEL inline
#endif
#define PUMICE_THREADS(...)
#define PUMICE_ARGUMENT(type) const type&
#define PUMICE_DEVICE inline
// One object for each site in the source, as `__shared__` has it. Array types need an alias.
#define PUMICE_BLOCK_SHARED(type, name) \
  static const char name##_site = 0;    \
  type& name = *static_cast<type*>(     \
      ::pumice::emulator::block_shared(&name##_site, sizeof(type), alignof(type)))
#define PUMICE_UNROLL
#define PUMICE_UNROLL_BY(times)
#define PUMICE_ROLLED

namespace pumice {

/// Implemented by tests/support/device_emulator.cpp; each speaks for the running fiber.
namespace emulator {
using Where = std::source_location;

int thread_index();
int block_index();
int block_index_y();
int block_size();
int grid_size();
void block_sync(const Where& where);
/// Waits for all lanes of the warp; their 32 words, valid until the next collective.
const uint64_t* exchange_in_warp(uint64_t word, const char* collective, const Where& where);
void* block_shared(const void* site, std::size_t bytes, std::size_t alignment);
void* launch_shared();
/// Until the launch before has run, where this one began before it.
void wait_for_previous();
/// For waits that poll: lets the other threads run. `made_progress` by whoever changes what others
/// poll; many pauses without it are a deadlock.
void pause(const char* why);
void made_progress();

template <class T> uint64_t word_of(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}
template <class T> T value_of(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}
}   // namespace emulator

using emulator::block_index;
using emulator::block_index_y;
using emulator::block_size;
using emulator::grid_size;
using emulator::thread_index;
using emulator::wait_for_previous;

inline void block_sync(const emulator::Where& where = emulator::Where::current()) {
  emulator::block_sync(where);
}
inline void warp_sync(const emulator::Where& where = emulator::Where::current()) {
  emulator::exchange_in_warp(0, "warp_sync", where);
}
inline void launch_next() {}
inline void fence_to_host() {}
inline void fence_to_device() {}
template <class T> T load_relaxed(const T* at) {
  return *at;
}
template <class T> void store_relaxed(T* at, T value) {
  *at = value;
  emulator::made_progress();
}
template <class T> T load_ahead(const T* at) {
  return *at;
}
inline void pause_polling() {
  emulator::pause("another block's word");
}

template <class T>
T warp_shuffle(T value, int lane, const emulator::Where& where = emulator::Where::current()) {
  const auto* words = emulator::exchange_in_warp(emulator::word_of(value), "warp_shuffle", where);
  return emulator::value_of<T>(words[lane & 31]);
}
template <class T>
T warp_shuffle_up(T value, int delta, const emulator::Where& where = emulator::Where::current()) {
  const auto* words =
      emulator::exchange_in_warp(emulator::word_of(value), "warp_shuffle_up", where);
  const int from = thread_index() % 32 - delta;
  return from < 0 ? value : emulator::value_of<T>(words[from]);
}
template <class T>
T warp_shuffle_down(T value, int delta, const emulator::Where& where = emulator::Where::current()) {
  const auto* words =
      emulator::exchange_in_warp(emulator::word_of(value), "warp_shuffle_down", where);
  const int from = thread_index() % 32 + delta;
  return from > 31 ? value : emulator::value_of<T>(words[from]);
}
template <class T>
T warp_shuffle_xor(T value, int mask, const emulator::Where& where = emulator::Where::current()) {
  const auto* words =
      emulator::exchange_in_warp(emulator::word_of(value), "warp_shuffle_xor", where);
  return emulator::value_of<T>(words[(thread_index() % 32 ^ mask) & 31]);
}
inline uint32_t warp_ballot(bool is, const emulator::Where& where = emulator::Where::current()) {
  const auto* words = emulator::exchange_in_warp(is ? 1 : 0, "warp_ballot", where);
  uint32_t lanes = 0;
  for (int lane = 0; lane < 32; ++lane)
    lanes |= static_cast<uint32_t>(words[lane]) << lane;
  return lanes;
}
inline bool warp_any(bool is, const emulator::Where& where = emulator::Where::current()) {
  return warp_ballot(is, where) != 0;
}
template <class T>
uint32_t warp_match_any(T value, const emulator::Where& where = emulator::Where::current()) {
  const uint64_t mine = emulator::word_of(value);
  const auto* words = emulator::exchange_in_warp(mine, "warp_match_any", where);
  uint32_t lanes = 0;
  for (int lane = 0; lane < 32; ++lane)
    lanes |= (words[lane] == mine ? 1u : 0u) << lane;
  return lanes;
}

inline int popcount(uint32_t word) {
  return std::popcount(word);
}
inline int popcount(uint64_t word) {
  return std::popcount(word);
}
inline int lowest_bit(uint32_t word) {
  return std::countr_zero(word);
}
inline int lowest_bit(uint64_t word) {
  return std::countr_zero(word);
}
inline int highest_bit(uint64_t word) {
  return 63 - std::countl_zero(word);
}

// Fibers switch only where they wait, so plain reads and writes are atomic.
template <class T> T atomic_add(T* at, T value) {
  const T before = *at;
  *at = static_cast<T>(before + value);
  return before;
}
template <class T> T atomic_or(T* at, T value) {
  const T before = *at;
  *at = before | value;
  return before;
}
template <class T> T atomic_and(T* at, T value) {
  const T before = *at;
  *at = before & value;
  return before;
}
template <class T> T atomic_min(T* at, T value) {
  const T before = *at;
  if (value < before) *at = value;
  return before;
}
template <class T> T atomic_max(T* at, T value) {
  const T before = *at;
  if (value > before) *at = value;
  return before;
}
template <class T> T atomic_compare_swap(T* at, T expected, T value) {
  const T before = *at;
  if (before == expected) *at = value;
  return before;
}

inline int64_t settled(int64_t value) {
  return value;
}

inline float round_down(float value) {
  return std::floor(value);
}
inline float quiet_nan() {
  return std::bit_cast<float>(0x7fffffffu);
}

inline void copy_16_bytes(void* to, const void* from) {
  std::memcpy(to, from, 16);
}

template <class T> T* launch_shared() {
  return static_cast<T*>(emulator::launch_shared());
}

}   // namespace pumice
