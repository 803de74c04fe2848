// Weights as the kernels of a device read them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <pumice/core/tensor.hpp>

namespace pumice {

namespace cuda {
class PackedTiles;
}

/// What was packed of one weight tensor, kept for the next call. Whoever changes the weights clears
/// it. Not thread-safe, as the layer that holds it is not.
class TileWeights {
 public:
  TileWeights();
  ~TileWeights();
  TileWeights(TileWeights&&) noexcept;
  TileWeights& operator=(TileWeights&&) noexcept;

  void clear();
  /// For the back end.
  cuda::PackedTiles& packed() { return *packed_; }

 private:
  std::unique_ptr<cuda::PackedTiles> packed_;
};

/// What was asked of the weights of one pass, so that the next pass can pack them all in one
/// launch. Threads share one as they do a MapUses.
class TileWeightUses {
 public:
  TileWeightUses();
  TileWeightUses(TileWeightUses&& other) noexcept;
  TileWeightUses& operator=(TileWeightUses&& other) noexcept;
  ~TileWeightUses();

  /// Remembers what was packed of each weight, by its place in the list.
  void learn(std::span<TileWeights* const> packed);
  /// Packs of each of `weights` [K, C_in / groups, C_out] what was asked of the one in its place,
  /// into the same place of `packed`, unless it is there already: a guess, which costs time where
  /// it is wrong, and nothing else. All lie on one device; the work is enqueued on `stream`. On the
  /// CPU there is nothing to do.
  void pack(std::span<const ConstTensorView> weights, std::span<TileWeights* const> packed,
            StreamView stream) const;

 private:
  struct Use;
  std::shared_ptr<const std::vector<Use>> uses_;   // another one each time
};

}   // namespace pumice
