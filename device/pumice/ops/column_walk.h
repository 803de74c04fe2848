// How a thread block goes through a share of rows and a tile of columns.
//
//    lane 0   row 0:  chunk 0 │ chunk 1 │ …      a chunk: up to four neighbouring columns
//    lane 1   row 1:  chunk 0 │ chunk 1 │ …      thread = lane · chunks + chunk
//    …
//    lane 0   row lanes: …
#pragma once

#include <pumice/ops/column_arguments.h>
#include <pumice/platform.h>
#include <pumice/skeleton/poison.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// How features are read: the type and the columns of an access.
template <ElementType kElement, int32_t kColumns> struct Access {
  static constexpr ElementType kType = kElement;
  static constexpr int32_t kCount = kColumns;
  using Chunk = float[static_cast<unsigned>(kColumns)];
  /// Rows that a thread reads before it looks at the first, of one array or of two or three: what
  /// registers hold without spilling.
  static constexpr int32_t kBytes = kColumns * element_bytes(kElement);
  static constexpr int32_t kRows = kBytes == 16 ? 4 : 8;
  static constexpr int32_t kRowsOfSeveral = kBytes == 16 ? 3 : 6;

  PUMICE_DEVICE static void load(const void* data, int64_t element, Chunk& value) {
    load_chunk<kType, kCount * element_bytes(kType)>(data, element, value, kCount);
  }
  PUMICE_DEVICE static void store(void* data, int64_t element, const Chunk& value) {
    store_chunk<kType, kCount * element_bytes(kType)>(data, element, value, kCount);
  }
  /// Of an fp32 array; `otherwise` where there is none.
  PUMICE_DEVICE static void load_or(const float* data, int64_t element, float otherwise,
                                    Chunk& value) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      value[i] = data == nullptr ? otherwise : data[element + i];
  }
  /// The same of parameters of any type, one by one: they may lie at any address.
  PUMICE_DEVICE static void load_or(ElementType type, const void* data, int64_t element,
                                    float otherwise, Chunk& value) {
    if (data == nullptr) return fill(value, otherwise);
    switch (type) {
      case ElementType::f16: return load_chunk<ElementType::f16, 2>(data, element, value, kCount);
      case ElementType::bf16: return load_chunk<ElementType::bf16, 2>(data, element, value, kCount);
      default: return load_chunk<ElementType::f32, 4>(data, element, value, kCount);
    }
  }
};

/// Calls Body::run<Access> for rows of so many channels.
template <class Body, class... Arguments>
PUMICE_DEVICE void with_access(ElementType type, int32_t channels, Arguments&... arguments) {
  const bool wide = channels % kColumnVector == 0;
  switch (type) {
    case ElementType::f16:
      if (wide) return Body::template run<Access<ElementType::f16, kColumnVector>>(arguments...);
      return Body::template run<Access<ElementType::f16, 1>>(arguments...);
    case ElementType::bf16:
      if (wide) return Body::template run<Access<ElementType::bf16, kColumnVector>>(arguments...);
      return Body::template run<Access<ElementType::bf16, 1>>(arguments...);
    default:
      if (wide) return Body::template run<Access<ElementType::f32, kColumnVector>>(arguments...);
      return Body::template run<Access<ElementType::f32, 1>>(arguments...);
  }
}

/// Gradients behind a ReLU whose output is `relu`; null: there is none.
template <class Access>
PUMICE_DEVICE void pass_relu(const void* relu, int64_t element, typename Access::Chunk& gradient) {
  if (relu == nullptr) return;
  typename Access::Chunk output;
  Access::load(relu, element, output);
  PUMICE_UNROLL
  for (int32_t i = 0; i < Access::kCount; ++i)
    gradient[i] = output[i] > 0.0f ? gradient[i] : 0.0f;
}

PUMICE_DEVICE int64_t item_begin(const RowItems& rows, int32_t item) {
  return rows.begin == nullptr ? 0 : rows.begin[item];
}
PUMICE_DEVICE int64_t item_size(const RowItems& rows, int32_t item) {
  return rows.begin == nullptr ? rows.rows.rows() : rows.begin[item + 1] - rows.begin[item];
}
/// How many shares an item of `size` rows is cut into, whatever room there is for more.
PUMICE_DEVICE int32_t shares_of(const ColumnShape& shape, int64_t size) {
  if (shape.step > 0 || size > int64_t{shape.share_rows} * (shape.shares - 1)) return shape.shares;
  const int32_t wanted = (static_cast<int32_t>(size) + shape.share_rows - 1) / shape.share_rows;
  return wanted > 1 ? wanted : 1;
}
/// An item, and the share of it that a block has.
struct BlockShare {
  int32_t item = 0;
  int32_t share = 0;
  int32_t shares = 1;   // of the item
  int64_t size = 0;     // rows of the item
  int64_t step = 0;     // rows of a share; the last ones may be shorter, or empty

  /// Blocks that are launched for rows that are not there have none.
  PUMICE_DEVICE bool there() const { return share < shares; }
  PUMICE_DEVICE bool first() const { return share == 0; }
};
/// A block waits for this before it loads a row: where the host knows the rows, nothing is divided.
PUMICE_DEVICE BlockShare share_of_block(const ColumnShape& shape) {
  if (shape.step > 0) return {0, block_index(), shape.shares, shape.rows.rows.capacity, shape.step};
  const int32_t item = block_index() / shape.shares;
  const int64_t size = item_size(shape.rows, item);
  const int32_t shares = shares_of(shape, size);
  return {item, block_index() - item * shape.shares, shares, size, (size + shares - 1) / shares};
}

/// Where the partial results of a share begin.
PUMICE_DEVICE int64_t partial_row(const ColumnShape& shape, int32_t item, int32_t share,
                                  int32_t which) {
  return ((int64_t{item} * shape.shares + share) * 2 + which) * shape.channels;
}

/// The place of a thread, for chunks of kCount columns.
template <int32_t kCount> class ColumnWalk {
 public:
  PUMICE_DEVICE ColumnWalk(const ColumnShape& shape, const BlockShare& of)
      : rows_(shape.rows),
        item_(of.item),
        channels_(shape.channels),
        first_channel_(block_index_y() * kColumnTile) {
    const int32_t left = channels_ - first_channel_;
    chunks_ = (left < kColumnTile ? left : kColumnTile) / kCount;
    lanes_ = kColumnThreads / chunks_;
    lane_ = thread_index() / chunks_;
    const int64_t before = of.step * of.share;
    const int64_t first = before < of.size ? before : of.size;
    const int64_t last = first + of.step < of.size ? first + of.step : of.size;
    begin_ = item_begin(rows_, item_) + first;
    end_ = begin_ + last - first;
  }

  PUMICE_DEVICE int32_t lanes() const { return lanes_; }
  PUMICE_DEVICE int32_t lane() const { return lane_; }
  PUMICE_DEVICE int32_t chunks() const { return chunks_; }
  /// First of the columns of this thread, counted in the tile, and among all.
  PUMICE_DEVICE int32_t column() const { return thread_index() % chunks_ * kCount; }
  PUMICE_DEVICE int32_t channel() const { return first_channel_ + column(); }
  /// Where the statistics of the item and of these columns stand in [items, channels].
  PUMICE_DEVICE int64_t statistic() const { return int64_t{item_} * channels_ + channel(); }
  /// The same in partial results.
  PUMICE_DEVICE int64_t partial(int32_t which) const {
    return (int64_t{block_index()} * 2 + which) * channels_ + channel();
  }

  /// Waits for what all threads have stored, and brings the results of all lanes into those of lane
  /// 0, as a tree: combine(a, b) adds those of thread `b` to those of thread `a`.
  template <class Combine> PUMICE_DEVICE void combine_lanes(const Combine& combine) const {
    block_sync();
    int32_t step = 1;
    while (step * 2 < lanes_)
      step *= 2;
    for (; step > 0; step /= 2) {
      if (lane_ < step && lane_ + step < lanes_)
        combine(thread_index(), thread_index() + step * chunks_);
      block_sync();
    }
  }

  /// Calls body(row) for every row of this lane; nothing for threads that no lane needs.
  template <class Body> PUMICE_DEVICE void for_rows(const Body& body) const {
    if (lane_ >= lanes_) return;
    PUMICE_UNROLL_BY(4)
    for (int64_t position = begin_ + lane_; position < end_; position += lanes_)
      body(rows_.order == nullptr ? position : int64_t{rows_.order[position]});
  }

  /// The same, kRows rows at a time: load(i, row) for all of them, then use(rows, how many there
  /// are). Where there are fewer, the first is loaded again, so that no load waits for a comparison
  /// and all are under way together; stores belong into `use`.
  template <int32_t kRows, class Load, class Use>
  PUMICE_DEVICE void for_row_batches(const Load& load, const Use& use) const {
    if (lane_ >= lanes_) return;
    PUMICE_ROLLED
    for (int64_t first = begin_ + lane_; first < end_; first += int64_t{lanes_} * kRows) {
      int64_t row[static_cast<unsigned>(kRows)];
      int32_t there = 0;
      PUMICE_UNROLL
      for (int32_t i = 0; i < kRows; ++i) {
        const int64_t position = first + int64_t{lanes_} * i;
        row[i] = position < end_ ? position : first;
        there += position < end_ ? 1 : 0;
      }
      if (rows_.order != nullptr) {
        PUMICE_UNROLL
        for (int32_t i = 0; i < kRows; ++i)
          row[i] = rows_.order[row[i]];
      }
      PUMICE_UNROLL
      for (int32_t i = 0; i < kRows; ++i)
        load(i, row[i]);
      use(row, there);
    }
  }

 private:
  const RowItems& rows_;
  int32_t item_;
  int32_t channels_;
  int32_t first_channel_;
  int32_t chunks_;
  int32_t lanes_;
  int32_t lane_;
  int64_t begin_;
  int64_t end_;
};

/// Whether the rows are poison: then `out`, of as many rows as there is room for, is made NaN.
PUMICE_DEVICE bool poisoned_rows(const RowCountRef& rows, int32_t channels, ElementType type,
                                 void* out) {
  if (!rows.poisoned()) return false;
  if (block_index_y() != 0) return true;
  if (element_bytes(type) == 4) {
    fill_with_nan<ElementType::f32>(out, rows.capacity * channels);
  } else {
    fill_with_nan<ElementType::f16>(out, rows.capacity * channels);
  }
  return true;
}

}   // namespace pumice
