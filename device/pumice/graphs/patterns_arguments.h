// What the kernels that make patterns (graphs/patterns.h) are launched with.
#pragma once

#include <pumice/shared/pattern_ref.h>
#include <pumice/shared/status.h>

namespace pumice {

inline constexpr int kPatternThreads = 256;

/// Numbers of rows, columns, types or parts as a caller gives them. A mistake is reported and stands for 0, since
/// every entry is kept; a RowList (ops/row_list_arguments.h) has rows that may be none, and NaN for
/// mistakes.
struct NumberList {
  const void* number = nullptr;   // [entries] int64_t or int32_t
  int64_t limit = 0;
  StatusRecord* status = nullptr;
  int32_t site = 0;
  int32_t is_wide = 0;
};

struct EntryKeyArguments {
  NumberList row;
  int64_t entries = 0;
  uint32_t* key = nullptr;   // [entries]
};

struct ListEntryArguments {
  NumberList column;
  const uint32_t* sorted = nullptr;   // [entries] entries, row by row
  int64_t entries = 0;
  int32_t* column_of = nullptr;   // [entries] by place
  int64_t* number_of = nullptr;   // [entries] by place
};

struct BoundRowArguments {
  const uint32_t* sorted_key = nullptr;   // [entries]
  int64_t entries = 0;
  int64_t rows = 0;
  int64_t* row_begin = nullptr;   // [rows + 1]
};

struct TurnEntryArguments {
  PatternRef pattern;                 // that is transposed
  const uint32_t* sorted = nullptr;   // [entries] its places, column by column
  int64_t entries = 0;
  int32_t* column_of = nullptr;   // [entries] the rows they had, by place
  int64_t* number_of = nullptr;   // [entries] by place
};

}   // namespace pumice
