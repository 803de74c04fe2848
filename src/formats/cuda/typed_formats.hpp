// What rows that are grouped by type are cut into on a device: tiles of one type each, whose
// positions are rows.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <pumice/core/allocator.hpp>

#include "formats/cuda/device_formats.hpp"
#include "formats/cuda/identity_pairs.hpp"
#include "formats/cuda/pair_tiles.hpp"

namespace pumice::cuda {

class TypedFormats final : public DeviceFormats {
 public:
  /// The lists are enqueued on `stream`, which what is made later is enqueued on too.
  TypedFormats(std::span<const std::int64_t> begin, StreamView stream)
      : TypedFormats(begin, jit::DeviceRunner(stream, default_allocator(stream.device))) {}

  /// Of one split: every row has one product.
  const TileMapRef& tiles(bool is_transposed, const TileCut& cut, OffsetOrder order) override;
  PairListRef pairs(bool is_transposed) override;
  const TileMapRef& pair_tiles(bool is_transposed, const PairTileOptions& options) override;
  /// Nothing asks for it: sums of single products are stored.
  const std::int32_t* pair_index(bool is_transposed) override;
  RowCountRef output_rows(bool is_transposed) const override;
  const std::vector<std::int64_t>& wait_for_pair_counts() override { return begin_on_host_; }

 private:
  struct Tiles {
    PairTileOptions options;
    std::uint64_t recording;   // in which it was made; 0: in none
    std::unique_ptr<PairTiles> tiles;
  };

  TypedFormats(std::span<const std::int64_t> begin, jit::DeviceRunner runner);

  RowCountRef rows() const { return {nullptr, begin_on_host_.back()}; }

  StreamView stream_;
  std::vector<std::int64_t> begin_on_host_;
  Buffer<std::int64_t> begin_;
  IdentityPairs pairs_;   // of which the rows alone are read
  std::mutex mutex_;
  std::vector<Tiles> tiles_;   // a handful
};

}   // namespace pumice::cuda
