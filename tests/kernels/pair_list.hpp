// The pairs of a map on the host, as kernels take them.
#pragma once

#include <pumice/shared/pair_list_ref.h>
#include <pumice/maps/kernel_map.hpp>

namespace pumice::test {

inline PairListRef pair_list(const KernelMapView& map) {
  return {.offset_begin = map.offset_begin.data(),
          .in = map.in.data(),
          .out = map.out.data(),
          .pairs = {nullptr, map.pairs()},
          .offsets = static_cast<std::int32_t>(map.offsets)};
}

}   // namespace pumice::test
