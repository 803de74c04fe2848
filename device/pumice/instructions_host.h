// Instructions of the tile kernels on the host: the wrappers below thread/, warp/ and warpgroup/
// call these where there is no device. Implemented by tests/support/instruction_emulator.cpp after
// the instruction set's documentation, not after the kernels that use them.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_spec.h>

namespace pumice::emulator {

/// Bytes from the start of the launch's shared memory.
uint32_t shared_address(const void* pointer);
void store_shared(uint32_t to, uint16_t value);

// Copies happen when somebody waits for them, as late as they may.
void copy_async(uint32_t to, const void* from, int bytes, bool there);
void copy_commit();
void copy_wait(int groups);

uint32_t pack_half2(ElementType type, float low, float high);
float widen_half(ElementType type, uint16_t bits);
uint32_t round_to_tf32(uint32_t bits);

void load_matrices(uint32_t (&matrix)[4], uint32_t address, bool transposed);
void multiply(ElementType operand, float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
              uint32_t b1);

void barrier_init(uint32_t barrier, int count);
void barrier_arrive(uint32_t barrier);
void barrier_arrive_expecting(uint32_t barrier, int bytes);
void barrier_arrive_after_copies(uint32_t barrier);
void barrier_wait(uint32_t barrier, uint32_t parity);
void copy_bulk(uint32_t to, const void* from, int bytes, uint32_t barrier);
void warps_sync(int number, int threads);

// Products happen when somebody waits for them.
void wgmma(ElementType operand, bool across, int columns, float* sums, uint64_t a, uint64_t b);
void wgmma_commit();
void wgmma_wait(int groups);

}   // namespace pumice::emulator
