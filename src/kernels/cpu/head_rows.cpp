// Where the entries and channels of a row and a head lie.
#include <cstddef>

#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"

namespace pumice::cpu {
namespace {

const void* at(const ConstTensorView& tensor, std::int64_t element) {
  return static_cast<const std::byte*>(tensor.raw()) +
         element * static_cast<std::int64_t>(size_of(tensor.dtype()));
}

}   // namespace

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
          .values = values_.defined() ? at(values_, head) : nullptr,
          .value_pitch = heads_,
          .features = at(features_, head * channels_),
          .pitch = heads_ * channels_,
          .channels = channels_};
}

}   // namespace pumice::cpu
