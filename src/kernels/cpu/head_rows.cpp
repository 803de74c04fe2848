// Where the entries and channels of a row and a head lie.
#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"

namespace pumice::cpu {

HeadRows::HeadRows(const CsrView& pattern, ConstTensorView features, ConstTensorView values,
                   std::int64_t heads, std::int64_t ahead)
    : pattern_(pattern),
      features_(static_cast<const std::byte*>(features.raw())),
      values_(values.defined() ? static_cast<const std::byte*>(values.raw()) : nullptr),
      bytes_(static_cast<std::int64_t>(size_of(features.dtype()))),
      heads_(heads),
      ahead_(ahead) {
  PUMICE_ENSURES(heads > 0 && features.extent(1) % heads == 0, features.extent(1), " channels of ",
                 heads, " heads");
  PUMICE_ENSURES(!values.defined() || values.dtype() == features.dtype(), "values of ",
                 name_of(values.dtype()), " beside features of ", name_of(features.dtype()));
  channels_ = features.extent(1) / heads;
}

}   // namespace pumice::cpu
