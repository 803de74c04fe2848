// Relations from a finer set to one of half the resolution: an offset leads from a cell to a cell
// of the coarser set only where the shift is as even or odd as the cell is, axis by axis. So a cell
// has few offsets to try: of 27, by its parities, 1, 2, 4 or 8; of 2³, one.
//
//   out = 2 · in + shift:     out  4 5 6 7      even: shifts −2 0 2      odd: shifts −1 1
#pragma once

#include <pumice/maps/cell_relation.h>
#include <pumice/platform.h>

namespace pumice {

/// The offsets that a cell with a key in the finer layout has to try. The lowest bit of axis a of a
/// layout that can be halved is bit a of its keys, and its biases are even.
struct ParityOffsets {
  const uint8_t* first;
  int count;

  PUMICE_DEVICE ParityOffsets(const WindowRef& window, int dimension, uint64_t key) {
    const auto parity = static_cast<int>(key & ((uint64_t{1} << dimension) - 1));
    const int begin = window.of_parity[parity];
    first = window.of_parity + kParityBegins + begin;
    count = window.of_parity[parity + 1] - begin;
  }
};

}   // namespace pumice
