// A runner for machines without a GPU: every kernel of the library by its name, run by the emulator
// of device code on ordinary memory.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include "support/emulated_kernels.hpp"
#include "support/kernel_engines.hpp"

#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>

#include <pumice/coords/block_set.h>
#include <pumice/coords/decode.h>
#include <pumice/coords/encode.h>
#include <pumice/coords/levels.h>
#include <pumice/coords/prune.h>
#include <pumice/coords/rekey.h>
#include <pumice/coords/reorder.h>
#include <pumice/coords/voxelize.h>
#include <pumice/formats/gray_order.h>
#include <pumice/formats/identity_pairs.h>
#include <pumice/formats/pair_lists.h>
#include <pumice/formats/pair_tiles.h>
#include <pumice/formats/tiles.h>
#include <pumice/graphs/balance.h>
#include <pumice/grid/fill.h>
#include <pumice/grid/gather.h>
#include <pumice/grid/radix_sort.h>
#include <pumice/grid/upload.h>
#include <pumice/maps/match.h>
#include <pumice/maps/reach.h>
#include <pumice/ops/column_max.h>
#include <pumice/ops/column_moments.h>
#include <pumice/ops/column_sums.h>
#include <pumice/ops/dense.h>
#include <pumice/ops/interpolate.h>
#include <pumice/ops/layer_norm.h>
#include <pumice/ops/normalize.h>
#include <pumice/ops/occupied.h>
#include <pumice/ops/permute.h>
#include <pumice/ops/pooling.h>
#include <pumice/ops/row_groups.h>
#include <pumice/ops/rows.h>
#include <pumice/ops/spread.h>

namespace pumice::test {
namespace {

template <class Arguments> EmulatedKernel wrap(void (*kernel)(const Arguments&)) {
  return {sizeof(Arguments),
          [kernel](const void* arguments) { kernel(*static_cast<const Arguments*>(arguments)); }};
}

#define PUMICE_EMULATED(kernel) \
  { #kernel, wrap(kernel) }

const std::map<std::string_view, EmulatedKernel>& kernels() {
  static const std::map<std::string_view, EmulatedKernel> all = {
      PUMICE_EMULATED(balance_rows),       PUMICE_EMULATED(begin_batches),
      PUMICE_EMULATED(bound_groups),       PUMICE_EMULATED(build_blocks),
      PUMICE_EMULATED(check_order),        PUMICE_EMULATED(clear_tail),
      PUMICE_EMULATED(column_maxima),      PUMICE_EMULATED(column_moments),
      PUMICE_EMULATED(column_sums),        PUMICE_EMULATED(count_inputs),
      PUMICE_EMULATED(count_kept),         PUMICE_EMULATED(count_pairs),
      PUMICE_EMULATED(cut_tiles),          PUMICE_EMULATED(decode_coordinates),
      PUMICE_EMULATED(encode_coordinates), PUMICE_EMULATED(fill_pair_tiles),
      PUMICE_EMULATED(fill_ranges),        PUMICE_EMULATED(find_corners),
      PUMICE_EMULATED(finish_maxima),      PUMICE_EMULATED(finish_norm_gradient),
      PUMICE_EMULATED(finish_sums),        PUMICE_EMULATED(first_of_groups),
      PUMICE_EMULATED(gather_words),       PUMICE_EMULATED(gray_keys_u32),
      PUMICE_EMULATED(gray_keys_u64),      PUMICE_EMULATED(identity_pairs),
      PUMICE_EMULATED(index_pairs),        PUMICE_EMULATED(interpolate_points),
      PUMICE_EMULATED(invert_deviations),  PUMICE_EMULATED(invert_rows),
      PUMICE_EMULATED(key_rows),           PUMICE_EMULATED(layer_norm_rows),
      PUMICE_EMULATED(list_pairs),         PUMICE_EMULATED(mark_occupied),
      PUMICE_EMULATED(mark_reached),       PUMICE_EMULATED(mark_reached_by_parity),
      PUMICE_EMULATED(match_maps),         PUMICE_EMULATED(move_dense_rows),
      PUMICE_EMULATED(normalize_gradient), PUMICE_EMULATED(normalize_rows),
      PUMICE_EMULATED(permute_axes),       PUMICE_EMULATED(plan_pair_tiles),
      PUMICE_EMULATED(pool_tiles),         PUMICE_EMULATED(quantise_points),
      PUMICE_EMULATED(reduce_groups),      PUMICE_EMULATED(reduce_points),
      PUMICE_EMULATED(reduced_gradient),   PUMICE_EMULATED(rekey_sets),
      PUMICE_EMULATED(report_outside),     PUMICE_EMULATED(scatter_chosen),
      PUMICE_EMULATED(sort_count_u32),     PUMICE_EMULATED(sort_count_u64),
      PUMICE_EMULATED(sort_scatter_u32),   PUMICE_EMULATED(sort_scatter_u64),
      PUMICE_EMULATED(sort_small_u32),     PUMICE_EMULATED(sort_small_u64),
      PUMICE_EMULATED(spread_items),       PUMICE_EMULATED(sum_kept),
      PUMICE_EMULATED(sum_occupied),       PUMICE_EMULATED(take_rows),
      PUMICE_EMULATED(write_block_cells),  PUMICE_EMULATED(write_cells),
      PUMICE_EMULATED(write_kept_ranks),   PUMICE_EMULATED(write_kept_rows),
      PUMICE_EMULATED(write_occupied),     PUMICE_EMULATED(write_tiles),
      PUMICE_EMULATED(write_words),
  };
  return all;
}

}   // namespace

const EmulatedKernel* find_emulated_kernel(std::string_view name) {
  const auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : &found->second;
}

namespace {

class EmulatedRunner final : public TestRunner {
 public:
  explicit EmulatedRunner(const EmulatorOptions& options)
      : EmulatedRunner(options, std::make_unique<StatusRecord>()) {}

 private:
  EmulatedRunner(const EmulatorOptions& options, std::unique_ptr<StatusRecord> record)
      : TestRunner({}, cpu_allocator(), record.get()),
        options_(options),
        record_(std::move(record)) {}

  void run_bytes(const jit::KernelName& kernel, const jit::LaunchShape& shape,
                 const void* arguments, std::size_t bytes) override;

  EmulatorOptions options_;
  std::unique_ptr<StatusRecord> record_;
};

void EmulatedRunner::run_bytes(const jit::KernelName& kernel, const jit::LaunchShape& shape,
                               const void* arguments, std::size_t bytes) {
  const EmulatedKernel* const found = find_emulated_kernel(kernel.name);
  if (found == nullptr)
    throw std::runtime_error(std::string(kernel.name) + " is not among the emulated kernels");
  const EmulatedKernel& emulated = *found;
  if (emulated.argument_bytes != bytes) {
    throw std::runtime_error(std::string(kernel.name) + " takes " +
                             std::to_string(emulated.argument_bytes) + " bytes of arguments, not " +
                             std::to_string(bytes));
  }
  note_launch(kernel.name);
  try {
    emulate_threads(
        {.blocks = shape.blocks,
         .blocks_y = shape.blocks_y,
         .threads = shape.threads,
         .shared_bytes = shape.shared_bytes},
        [&] { emulated.thread(arguments); }, options_);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(kernel.name) + ", " + error.what());
  }
}

}   // namespace

std::unique_ptr<TestRunner> emulated_runner(const EmulatorOptions& options) {
  return std::make_unique<EmulatedRunner>(options);
}

}   // namespace pumice::test
