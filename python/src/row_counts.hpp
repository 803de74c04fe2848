// How many rows of a tensor are in use, as Python says it.
#pragma once

#include <pumice/core/row_count.hpp>

#include "sites.hpp"

namespace pumice::python {

/// The stream of the sites, or of the map, that `count` is, else that of the framework.
std::optional<StreamView> home_of_count(nb::handle count);

/// Whether `count` is sites, or a map onto sites, whose number only the device knows.
bool counts_on_device(nb::handle count);

/// Of `features`: from the sites that they lie on, from a map whose outputs they are, or from an
/// int64 tensor of one element beside them, for as long as that lives. None: all rows.
class GivenCount {
 public:
  /// UserError for anything else, and for sites of other rows.
  GivenCount(const Call& call, nb::handle count, const ConstTensorView& features);
  GivenCount(const GivenCount&) = delete;
  GivenCount& operator=(const GivenCount&) = delete;
  const RowCount* get() const { return rows_; }

 private:
  RowCount own_;
  const RowCount* rows_ = nullptr;
};

/// Operators whose sums over rows take a count, clear_tail among them.
void bind_counted(nb::module_& module);
void bind_losses(nb::module_& module);

}   // namespace pumice::python
