// Where the entries and channels of a row and a head lie.
#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"

namespace pumice::cpu {
HeadRows::HeadRows(const CsrView& pattern, ConstTensorView features, ConstTensorView values,
                   std::int64_t heads)
    : pattern_(pattern), features_(features), values_(values), heads_(heads) {
  PUMICE_ENSURES(heads > 0 && features.extent(1) % heads == 0, features.extent(1), " channels of ",
                 heads, " heads");
  channels_ = features.extent(1) / heads;
}

EntryRow HeadRows::of(std::int64_t row, std::int64_t head) const {
  const std::int64_t begin = pattern_.begin_of(row);
  return {.column = pattern_.column.data() + begin,
          .number = pattern_.entry.empty() ? nullptr : pattern_.entry.data() + begin,
          .first = begin,
          .entries = pattern_.end_of(row) - begin,
          .values = element_at(values_, head),
          .value_pitch = heads_,
          .features = element_at(features_, head * channels_),
          .pitch = heads_ * channels_,
          .channels = channels_};
}

}   // namespace pumice::cpu
