// Pairs seen from the other side.
#pragma once

#include <utility>

namespace pumice {

/// A KernelMapView or a RelationView whose inputs are the outputs of `view`.
template <class View> View other_side(View view) {
  std::swap(view.in_rows, view.out_rows);
  std::swap(view.in, view.out);
  std::swap(view.in_order, view.out_order);
  std::swap(view.sorted_by_in, view.sorted_by_out);
  view.is_transposed = !view.is_transposed;
  return view;
}

}   // namespace pumice
