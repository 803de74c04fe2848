// Runs device code on the host: every thread of a block is a fiber that runs until it waits at a
// barrier or a warp collective. Blocks run one after the other, in an order that can be chosen, as
// can the order of threads between two waits, so that code which depends on either shows. Shared
// memory holds garbage at the start of every block and is heap memory of its exact size, which the
// address sanitizer watches.
//
//   emulate({.blocks = 4, .threads = 64}, add_one, AddOne{...});
//
// What would hang or be undefined on a device is a std::runtime_error that says what happened: some
// threads at a barrier and others gone, lanes of a warp at different collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <pumice/platform.h>

namespace pumice::test {

struct EmulatedShape {
  std::int64_t blocks = 1;
  int blocks_y = 1;
  int threads = 256;   // a multiple of 32
  int shared_bytes = 0;
};

enum class RunOrder : unsigned char { ascending, descending, shuffled };

struct EmulatorOptions {
  RunOrder blocks = RunOrder::ascending;
  RunOrder threads = RunOrder::ascending;
  std::uint64_t seed = 1;
};

/// Told of what is read from global memory by instructions of the emulator, rather than by code of
/// a kernel; null: nobody.
using ReadListener = void (*)(const void* from, std::size_t bytes);
void listen_to_reads(ReadListener listener);
void note_read(const void* from, std::size_t bytes);

/// Runs `work`, which may emulate a kernel: where its threads first wait for the launch before
/// (wait_for_previous), and no thread of its block can go on without, `previous` runs. At the end
/// of `work` it runs if nobody waited. A thread of `work` that returns without having waited is an
/// error.
void run_when_waited_for(const std::function<void()>& previous, const std::function<void()>& work);

/// Runs `thread` once for each thread of the grid.
void emulate_threads(const EmulatedShape& shape, const std::function<void()>& thread,
                     const EmulatorOptions& options = {});

template <class Arguments>
void emulate(const EmulatedShape& shape, void (*kernel)(const Arguments&),
             const Arguments& arguments, const EmulatorOptions& options = {}) {
  emulate_threads(
      shape, [kernel, &arguments] { kernel(arguments); }, options);
}

}   // namespace pumice::test
