// Scans and arrays to files, written beside the target and renamed: all or nothing.
#pragma once

#include <filesystem>

#include <pumice/points/point_cloud.hpp>

namespace pumice {

struct PlyOptions {
  bool binary = true;         // little endian; otherwise text that reads back to the same floats
  ConstTensorView colour{};   // u8 [P, 3] red green blue; nothing when undefined
};

/// x y z and whatever else the cloud has: intensity, time, ring, label.
void write_ply(const std::filesystem::path& path, const PointCloud& cloud,
               const PlyOptions& options = {});

/// An array of any dtype but bf16, which NumPy does not know.
void write_npy(const std::filesystem::path& path, ConstTensorView array);

}   // namespace pumice
