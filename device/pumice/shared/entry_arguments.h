// What kernels over the entries of a sparse matrix are launched with.
#pragma once

#include <pumice/shared/pattern_ref.h>

namespace pumice {

/// Sums or choices of parts of long rows, finished in the order of the parts.
struct PartialRows {
  float* value = nullptr;      // [parts, channels]
  int64_t* source = nullptr;   // the same of `most`: the number of the entry
};

struct GatherArguments {
  PatternRef pattern;
  const void* features = nullptr;       // [columns, channels]
  const void* values = nullptr;         // [entries, heads], by the entries' numbers
  const int64_t* shared_by = nullptr;   // row_begin of the rows that `features` are of, each of
                                        // which is divided by its entries; of `shared`
  const int64_t* picked = nullptr;      // [columns, channels] of `picked`: numbers of entries
  const float* shift = nullptr;         // [channels] of `added`; null: none
  const void* residual = nullptr;       // [rows, channels] of `added`, null: none; may be `output`
  void* output = nullptr;               // [rows, channels]
  int64_t* source = nullptr;            // [rows, channels] of `most`
  PartialRows partial{};
  uint32_t* arrived = nullptr;   // [tiles, most_parts] of the product's own; null: a second launch
                                 // adds up parts
  int32_t most_parts = 0;
  int32_t channels = 0;
  int32_t heads = 1;
  int32_t units = 1;        // of work, of a run
  int32_t part_teams = 0;   // of threads, that take parts of long rows
  bool averages = false;    // sums are divided by the number of entries
  float sign = 1;           // of `most`: -1 for the least
};

struct EdgeArguments {
  PatternRef pattern;
  const void* left = nullptr;        // [rows, channels]
  const void* right = nullptr;       // [columns, channels]
  const int64_t* picked = nullptr;   // [rows, channels]: numbers of entries
  const void* attention = nullptr;   // [channels] of leaky
  const void* entry = nullptr;       // [entries, channels] of leaky, by the entries' numbers
  void* output = nullptr;            // [entries, heads], by the entries' numbers
  int32_t channels = 0;
  int32_t heads = 1;
  int32_t head_channels = 0;
  bool averages = false;   // divided by the number of entries of the row
  float slope = 1;         // of leaky
};

struct ScoreArguments {
  PatternRef pattern;
  const void* own = nullptr;         // [rows, channels]
  const void* other = nullptr;       // [columns, channels]
  const void* entry = nullptr;       // [entries, channels], by the entries' numbers
  const void* attention = nullptr;   // [channels]
  const void* grad = nullptr;        // [entries, heads], by the entries' numbers
  void* output = nullptr;            // [rows, channels]
  void* grad_entry = nullptr;        // [entries, channels]
  float* partial = nullptr;          // [parts of long rows, channels]
  float* share = nullptr;            // [items at a time, channels] of the gradient of attention
  int32_t channels = 0;
  int32_t heads = 1;
  float slope = 1;
};

}   // namespace pumice
