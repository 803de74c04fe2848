// Sites and tensors as counts.
#include "row_counts.hpp"

#include <memory>

#include <pumice/core/error.hpp>

namespace pumice::python {

namespace {

/// Null where it is neither sites nor a map.
const CoordinateSet* set_of(nb::handle count) {
  if (nb::isinstance<Sites>(count)) return nb::inst_ptr<Sites>(count)->set.get();
  if (!nb::isinstance<Map>(count)) return nullptr;
  const Map& map = *nb::inst_ptr<Map>(count);
  return (map.transposed ? map.map->in() : map.map->out()).get();
}

}   // namespace

std::optional<StreamView> home_of_count(nb::handle count) {
  const CoordinateSet* const set = count.is_none() ? nullptr : set_of(count);
  return set == nullptr ? std::nullopt : std::optional(set->stream());
}

bool counts_on_device(nb::handle count) {
  const CoordinateSet* const set = set_of(count);
  return set != nullptr && !set->rows().host_knows();
}

GivenCount::GivenCount(const Call& call, nb::handle count, const ConstTensorView& features) {
  if (count.is_none()) return;
  if (const CoordinateSet* const set = set_of(count)) {
    rows_ = &set->rows();
    PUMICE_EXPECTS(set->device() == features.device(), "count is of sites on ",
                   to_string(set->device()), ", and features are on ", to_string(features.device()),
                   ": bring one to the other with to()");
    return;
  }
  const TensorView word = single_view_of(count, "count", call.stream());
  PUMICE_EXPECTS(word.dtype() == DType::i64, "count holds ", name_of(word.dtype()),
                 ": give an int64 tensor of one element, or the sites of the rows");
  own_ = RowCount::on_device(
      std::shared_ptr<std::int64_t>(std::shared_ptr<void>(), word.data<std::int64_t>()),
      features.rows(), features.device());
  rows_ = &own_;
}

}   // namespace pumice::python
