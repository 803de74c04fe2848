// Making a coordinate set from the caller's rows, or from keys that are sorted already.
#include <pumice/coords/coordinate_set.hpp>

#include <algorithm>
#include <functional>
#include <sstream>

#include <pumice/core/radix_sort.hpp>

#include "coords/cpu/coordinate_set_builder.hpp"
#include "coords/cpu/key_list.hpp"
#include "coords/cuda/from_coordinates.hpp"

namespace pumice {
namespace {

std::string describe_cell(const KeyLayout& layout, std::uint64_t key) {
  std::ostringstream text;
  text << "(batch " << decode_batch(layout, key);
  for (int axis = 0; axis < layout.dimension; ++axis) {
    text << (axis == 0 ? "; " : ", ") << decode_axis(layout, key, axis);
  }
  text << ')';
  return text.str();
}

/// Position of the first key that is not above its predecessor; size() when all ascend.
std::size_t first_not_ascending(std::span<const std::uint64_t> keys) {
  const auto found = std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>());
  return found == keys.end() ? keys.size() : static_cast<std::size_t>(found - keys.begin()) + 1;
}

}   // namespace

CoordinateSetPtr CoordinateSet::create(ConstTensorView coordinates,
                                       const CoordinateOptions& options) {
  if (coordinates.device().kind == DeviceKind::cuda) return cuda::create(coordinates, options);
  KeyList list = encode_coordinates(coordinates, options);
  const auto keys = list.keys.span();
  Buffer<std::int32_t> order;
  if (first_not_ascending(keys) < keys.size()) {
    order = identity_order(list.keys.size());
    radix_sort_pairs(keys, order.span(), key_bits(list.layout));
    const std::size_t repeated = first_not_ascending(keys);
    if (repeated < keys.size()) {
      const auto rank = static_cast<std::int64_t>(repeated);
      detail::raise_user("coordinates: rows ", order[rank - 1], " and ", order[rank], " are both ",
                         describe_cell(list.layout, keys[repeated]),
                         "; a site has one row, so drop one of them or merge their features first");
    }
  }
  Tensor copy = Tensor::from(coordinates.span<std::int32_t>(), coordinates.shape());
  return CoordinateSetBuilder::build(std::move(list.keys), std::move(order), std::move(copy),
                                     list.layout, list.batch_size, options);
}

CoordinateSetPtr CoordinateSet::from_sorted_keys(Buffer<std::uint64_t> keys,
                                                 const KeyLayout& layout,
                                                 const CoordinateOptions& options) {
  const std::size_t wrong = first_not_ascending(keys.span());
  PUMICE_EXPECTS(wrong == keys.span().size(), "keys: the key at position ", wrong,
                 " is not above its predecessor; sort them and remove duplicates");
  std::int32_t batch_size = options.batch_size.value_or(0);
  if (keys.size() > 0) {
    const std::uint64_t last = keys[keys.size() - 1];
    PUMICE_EXPECTS(key_bits(layout) >= 63 || last >> key_bits(layout) == 0,
                   "keys: the last key has more than the ", key_bits(layout),
                   " bits of the layout; encode keys with the layout given");
    const std::int64_t needed = decode_batch(layout, last) + 1;
    PUMICE_EXPECTS(!options.batch_size || needed <= *options.batch_size,
                   "batch_size = ", options.batch_size.value_or(0),
                   " where the last key is of batch item ", needed - 1, "; raise it or drop it");
    if (!options.batch_size) batch_size = static_cast<std::int32_t>(needed);
  }
  return CoordinateSetBuilder::build(std::move(keys), {}, {}, layout, batch_size, options);
}

}   // namespace pumice
