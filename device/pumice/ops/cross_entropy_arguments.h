// What the kernels of cross entropy are launched with.
//
//    row 0  ┐ 8 rows a warp                      block 0: Σ losses, Σ weights ┐ fp64, added up in
//    row 1  ┤ loss and log Σ exp    ──▶          block 1: …                   ┴ one order ──▶ loss
//    …      ┘ of each, in fp32                   as many as the rows in use need
#pragma once

#include <pumice/shared/row_count.h>
#include <pumice/shared/status.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kLossThreads = 256;
/// Rows of a block, which the number of rows alone decides about: sums have the same bits in any
/// room and on any device.
inline constexpr int kLossRows = 64;
inline constexpr int kFinishLossThreads = 512;

/// Scores, and what they should have been.
struct LabelledRows {
  RowCountRef rows{};
  const void* scores = nullptr;    // [rows, classes] of `type`
  const void* label = nullptr;     // [rows], i32, or i64 where `wide`
  const float* weight = nullptr;   // [classes]; null: 1
  int64_t ignored = 0;             // the label of rows that do not count
  int32_t classes = 0;
  float smoothing = 0;
  ElementType type = ElementType::f32;
  bool wide = false;
};

struct CrossEntropyArguments {
  LabelledRows of{};
  float* log_sum = nullptr;    // [rows] log Σ exp(score), of those that count
  double* partial = nullptr;   // [blocks, 2] Σ of the losses, and of the weights, of each block
  StatusRecord* status = nullptr;   // whom labels that are no class are reported to; they give NaN
  int32_t site = 0;
};

/// loss = Σ losses / Σ weights
struct FinishLossArguments {
  RowCountRef rows{};
  const double* partial = nullptr;
  float* loss = nullptr;
  float* weight = nullptr;
};

struct CrossEntropyGradientArguments {
  LabelledRows of{};
  const float* log_sum = nullptr;
  const float* grad_loss = nullptr;   // [1]
  const float* total = nullptr;       // [1] Σ of the weights
  void* out = nullptr;                // [rows, classes] of `type`; 0 where a row does not count
};

}   // namespace pumice
