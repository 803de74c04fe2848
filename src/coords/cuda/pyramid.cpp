// Layouts and memory of the levels.
#include "coords/cuda/pyramid.hpp"

#include <pumice/core/error.hpp>

namespace pumice::cuda {

Pyramid::Pyramid(jit::KernelRunner& runner, KeyLayout layout, std::int64_t elements,
                 int first_halving, std::span<const SetCapacity> capacities, bool has_order,
                 const std::string& name, FillList& fill)
    : sums_(runner, elements, fill) {
  const auto halve = [&] {
    PUMICE_ENSURES(can_halve(layout), name, ": the layout of its keys cannot be halved further");
    layout = halved(layout);
  };
  for (int i = 0; i < first_halving; ++i)
    halve();
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    if (i > 0) halve();
    const int halvings = first_halving + static_cast<int>(i);
    sets_.emplace_back(runner, layout, capacities[i], has_order && i == 0,
                       halvings == 0 ? name : name + ", level " + std::to_string(halvings), fill);
    shifts_.push_back(halvings * layout.dimension);
  }
}

void Pyramid::make(jit::KernelRunner& runner, const SortedElements& elements) {
  std::vector<DeviceSet*> pointers;
  for (DeviceSet& set : sets_)
    pointers.push_back(&set);
  make_levels(runner, elements, sums_, pointers, shifts_);
}

}   // namespace pumice::cuda
