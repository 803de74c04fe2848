// Names of plans and of what they are made of.
#include <pumice/plan/convolution_plan.hpp>

#include <array>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

#include "plan/spec_names.hpp"

namespace pumice {

std::string_view name_of(Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::gather_gemm_scatter: return "gather_gemm_scatter";
    case Dataflow::fetch_on_demand: return "fetch_on_demand";
    case Dataflow::implicit_gemm: return "implicit_gemm";
    case Dataflow::sum_over_pairs: return "sum_over_pairs";
  }
  PUMICE_ENSURES(false, "dataflow ", static_cast<int>(dataflow));
  return {};
}

Dataflow parse_dataflow(std::string_view name) {
  for (const Dataflow dataflow :
       {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
    if (name == name_of(dataflow)) return dataflow;
  }
  detail::raise_user("dataflow = \"", name,
                     "\": choose gather_gemm_scatter, fetch_on_demand or implicit_gemm");
}

std::string ConvolutionPlan::name() const {
  std::string text(name_of(dataflow));
  if (tile) text += fmt::format("/{}", tile->name());
  if (gradient) text += fmt::format("/{}", gradient->name());
  if (tile_rows > 0) text += fmt::format("/{}", tile_rows);
  if (tile && dataflow == Dataflow::implicit_gemm && !sort_by_mask) text += "/unsorted";
  if (!tile && sort_by_mask) text += "/sorted";
  if (splits > 1) text += fmt::format("/splits {}", splits);
  if (write != Write::store) text += fmt::format("/{}", cuda::name_of(write));
  return text;
}

bool ConvolutionPlan::runs_like(const ConvolutionPlan& other) const {
  return dataflow == other.dataflow && tile_rows == other.tile_rows &&
         sort_by_mask == other.sort_by_mask && splits == other.splits && write == other.write &&
         fuses_inputs == other.fuses_inputs && tile == other.tile && gradient == other.gradient;
}

}   // namespace pumice
