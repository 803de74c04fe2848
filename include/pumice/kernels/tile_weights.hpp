// Weights as the kernels of a device read them.
#pragma once

#include <memory>

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

}   // namespace pumice
