// Which way each kind of kernel map is built.
#include <pumice/maps/build.hpp>

#include <chrono>
#include <sstream>
#include <string>
#include <utility>

#include <pumice/core/log.hpp>

#include "coords/cpu/coarsen.hpp"
#include "maps/cpu/block_match.hpp"
#include "maps/cpu/halving.hpp"
#include "maps/cpu/reached_cells.hpp"
#include "maps/cpu/row_search.hpp"
#include "maps/cuda/strided_set.hpp"
#include "maps/set_options.hpp"

namespace pumice {
namespace {

/// Says what was built and how long it took, for PUMICE_LOG=map.
class BuildLog {
 public:
  KernelMapPtr of(KernelMapPtr map) const {
    if (!logging(LogTopic::map)) return map;
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start_;
    std::ostringstream text;
    text << to_string(map->window()) << ": " << rows_of(*map->in()) << " -> "
         << rows_of(*map->out()) << " rows, ";
    if (map->device().kind == DeviceKind::cpu) text << map->pairs() << " pairs, ";
    text << spent.count() << " ms";
    log(LogTopic::map, text.str());
    return map;
  }

 private:
  static std::string rows_of(const CoordinateSet& set) {
    const RowCount& rows = set.rows();
    return rows.host_knows() ? std::to_string(rows.host())
                             : "at most " + std::to_string(rows.capacity());
  }
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void check_set(const char* name, const CoordinateSetPtr& set, const KernelWindow& window) {
  PUMICE_EXPECTS(set != nullptr, name, " is null; give a coordinate set");
  PUMICE_EXPECTS(set->dimension() == window.dimension, name, " has dimension ", set->dimension(),
                 ", the kernel ", window.dimension, "; make them equal");
}

/// Whether input ranks ascend within every offset. The scan stops at the first pair that descends.
bool inputs_ascend(const KernelPairs& lists, const CoordinateSet& in) {
  const auto* coordinates = in.coordinates().data<std::int32_t>();
  const std::int64_t columns = 1 + in.dimension();
  const auto place = [&](std::int32_t row) {   // ranks compare as keys do
    if (in.in_key_order()) return static_cast<std::uint64_t>(row);
    const std::int32_t* cell = coordinates + row * columns;
    return encode_key(in.layout(), cell[0], cell + 1);
  };
  for (std::int64_t k = 0; k + 1 < lists.offset_begin.size(); ++k) {
    for (std::int64_t i = lists.offset_begin[k] + 1; i < lists.offset_begin[k + 1]; ++i) {
      if (place(lists.in[i]) < place(lists.in[i - 1])) return false;
    }
  }
  return true;
}

/// Every site with itself: the map of a kernel of one offset that goes nowhere.
KernelPairs pair_with_itself(const CoordinateSet& set) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 14;
  const std::int32_t* order = set.index().order;
  KernelPairs pairs = make_pair_lists(
      1, set.size(), kChunk,
      [](std::int64_t begin, std::int64_t end, std::int64_t* counts) { *counts = end - begin; },
      [&](std::int64_t begin, std::int64_t end, const PairWriter& writer) {
        for (std::int64_t rank = begin; rank < end; ++rank) {
          const auto row = order == nullptr ? static_cast<std::int32_t>(rank) : order[rank];
          writer.write(0, row, row);
        }
      });
  pairs.sorted_by_in = true;
  return pairs;
}

KernelPairs find_pairs(const CoordinateSet& in, const CoordinateSet& out,
                       const KernelWindow& window, Reach reach) {
  if (&in == &out && window.volume() == 1 && window.symmetric()) return pair_with_itself(in);
  const bool out_is_coarse = reach == Reach::out_to_in;
  const CoordinateSet& fine = out_is_coarse ? in : out;
  const CoordinateSet& coarse = out_is_coarse ? out : in;
  if (can_pair_by_halving(window, fine.layout(), coarse.layout())) {
    KernelPairs lists = pair_by_halving(fine, coarse);
    if (!out_is_coarse) std::swap(lists.in, lists.out);
    return lists;
  }
  KernelPairs lists = can_match_blocks(window) ? match_blocks(in, out, window, reach)
                                               : search_rows(in, out, window, reach);
  lists.sorted_by_in = inputs_ascend(lists, in);
  return lists;
}

KernelMapPtr make_map(const CoordinateSetPtr& in, const CoordinateSetPtr& out,
                      const KernelWindow& window, Reach reach, bool has_identity) {
  PUMICE_EXPECTS(in->device() == out->device(), "one coordinate set is on ",
                 to_string(in->device()), ", the other on ", to_string(out->device()),
                 "; CoordinateSet::copy_to brings one to the other");
  if (in->device().kind == DeviceKind::cuda) {
    return KernelMap::on_device(window, in, out, reach == Reach::in_to_out, has_identity);
  }
  KernelPairs lists = find_pairs(*in, *out, window, reach);
  return KernelMap::of_search(window, in, out, std::move(lists), has_identity);
}

}   // namespace

KernelMapPtr submanifold_map(const CoordinateSetPtr& set, const KernelWindow& window) {
  const BuildLog built;
  validate(window);
  check_set("set", set, window);
  for (int axis = 0; axis < window.dimension; ++axis) {
    const std::int32_t stride = window.stride[static_cast<std::size_t>(axis)];
    PUMICE_EXPECTS(stride == 1, "stride[", axis, "] = ", stride,
                   ": the outputs of a submanifold convolution are its inputs, so its stride is 1; "
                   "use a strided one");
  }
  return built.of(make_map(set, set, window, Reach::out_to_in, window.symmetric()));
}

KernelMapPtr map_between(const CoordinateSetPtr& in, const CoordinateSetPtr& out,
                         const KernelWindow& window) {
  const BuildLog built;
  validate(window);
  check_set("in", in, window);
  check_set("out", out, window);
  return built.of(make_map(in, out, window, Reach::out_to_in, in == out && window.symmetric()));
}

CoordinateSetPtr strided_set(const CoordinateSetPtr& in, const KernelWindow& window,
                             StridedOutputs outputs) {
  validate(window);
  check_set("in", in, window);
  const CoordinateOptions options = strided_options(*in, window);
  if (in->device().kind == DeviceKind::cuda) {
    return cuda::strided_set(in, window, outputs == StridedOutputs::cell, options);
  }
  return outputs == StridedOutputs::cell ? coarsen_to(*in, window.stride, options)
                                         : reached_cells(*in, window, Reach::in_to_out, options);
}

KernelMapPtr strided_map(const CoordinateSetPtr& in, const KernelWindow& window,
                         StridedOutputs outputs) {
  const BuildLog built;
  const CoordinateSetPtr out = strided_set(in, window, outputs);
  return built.of(make_map(in, out, window, Reach::out_to_in, false));
}

KernelMapPtr transposed_map(const CoordinateSetPtr& coarse, const CoordinateSetPtr& fine,
                            const KernelWindow& window) {
  const BuildLog built;
  validate(window);
  check_set("coarse", coarse, window);
  check_set("fine", fine, window);
  return built.of(make_map(coarse, fine, window, Reach::in_to_out, false));
}

KernelMapPtr generative_map(const CoordinateSetPtr& coarse, const KernelWindow& window) {
  const BuildLog built;
  validate(window);
  check_set("coarse", coarse, window);
  const CoordinateOptions options = generated_options(*coarse, window);
  const CoordinateSetPtr fine = coarse->device().kind == DeviceKind::cuda
                                    ? cuda::generated_set(coarse, window, options)
                                    : reached_cells(*coarse, window, Reach::out_to_in, options);
  return built.of(make_map(coarse, fine, window, Reach::in_to_out, false));
}

}   // namespace pumice
