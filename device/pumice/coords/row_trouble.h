// Noting rows that something is wrong with.
#pragma once

#include <pumice/coords/level_arguments.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_DEVICE void note_row(RowTrouble* trouble, uint32_t row) {
  atomic_add(&trouble->rows, 1u);
  atomic_max(&trouble->last, row);
}

}   // namespace pumice
