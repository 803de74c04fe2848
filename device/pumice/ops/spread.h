// One vector for each batch item, given to all its rows: alone, or joined with what they have.
#pragma once

#include <pumice/ops/column_walk.h>

namespace pumice {

struct SpreadItems {
  template <class Access>
  PUMICE_DEVICE static void run(const SpreadArguments& a, const BlockShare& of) {
    constexpr int32_t kCount = Access::kCount;
    const ColumnWalk<kCount> walk(a.shape, of);
    typename Access::Chunk value;
    Access::load(a.items, walk.statistic(), value);
    if (a.spread == Spread::average) {
      const float size = static_cast<float>(of.size);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        value[i] /= size;   // nobody stores it where there are no rows
    }
    walk.for_rows([&](int64_t row) {
      const int64_t element = row * a.shape.channels + walk.channel();
      typename Access::Chunk x;
      fill(x, 0.0f);
      if (a.in != nullptr) Access::load(a.in, element, x);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i) {
        switch (a.spread) {
          case Spread::copy:
          case Spread::average: x[i] = value[i]; break;
          case Spread::add: x[i] += value[i]; break;
          case Spread::multiply: x[i] *= value[i]; break;
        }
      }
      Access::store(a.out, element, x);
    });
  }
};

PUMICE_KERNEL PUMICE_THREADS(kColumnThreads) void spread_items(PUMICE_ARGUMENT(SpreadArguments) a) {
  wait_for_previous();
  if (poisoned_rows(a.shape.rows.rows, a.shape.channels, a.shape.type, a.out)) return;
  const BlockShare of = share_of_block(a.shape);
  if (!of.there()) return;
  with_access<SpreadItems>(a.shape.type, a.shape.channels, a, of);
}

}   // namespace pumice
