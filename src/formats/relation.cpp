// Relations that kernel maps make.
#include <pumice/formats/relation.hpp>

#include <pumice/core/error.hpp>

#include "formats/cuda/map_formats.hpp"
#include "maps/other_side.hpp"

namespace pumice {

RelationView relation_of(const KernelMapView& map) {
  RelationView relation{.offsets = map.offsets,
                        .in_rows = map.in_rows,
                        .out_rows = map.out_rows,
                        .offset_begin = map.offset_begin,
                        .in = map.in,
                        .out = map.out,
                        .out_order = map.out_order,
                        .in_order = map.in_order,
                        .sorted_by_out = map.sorted_by_out,
                        .sorted_by_in = map.sorted_by_in,
                        .has_identity_offset = map.has_identity_offset,
                        .device = map.device,
                        .is_transposed = map.is_transposed};
  if (map.device.kind == DeviceKind::cuda) {
    PUMICE_ENSURES(map.map != nullptr, "a view of no kernel map on ", to_string(map.device));
    relation.formats = &cuda::MapFormats::of(*map.map);
  }
  return relation;
}

RelationView transposed(const RelationView& relation) {
  return other_side(relation);
}

}   // namespace pumice
