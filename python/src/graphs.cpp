// Graphs, and products of sparse matrices.
#include "graphs.hpp"

#include <array>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/graphs/edges_in_use.hpp>
#include <pumice/ops/edge_softmax.hpp>
#include <pumice/ops/spmm.hpp>

#include "arguments.hpp"
#include "held_tensor.hpp"

using namespace nanobind::literals;

namespace pumice::python {

std::shared_ptr<const Csr> GraphHandle::backwards(StreamView stream) const {
  const bool holds_gil = stream.device.kind != DeviceKind::cpu;   // as Call::run has it
  std::unique_lock lock(shared->mutex, std::try_to_lock);
  if (!lock.owns_lock() && holds_gil) {
    const GilReleased released;
    lock.lock();
  } else if (!lock.owns_lock()) {
    lock.lock();
  }
  return shared->graph.backwards(stream);
}

EntryReduction reduction_of(const std::string& name) {
  constexpr std::array<std::pair<const char*, EntryReduction>, 4> kNames{{
      {"sum", EntryReduction::sum},
      {"mean", EntryReduction::mean},
      {"max", EntryReduction::max},
      {"min", EntryReduction::min},
  }};
  for (const auto& [known, reduction] : kNames)
    if (name == known) return reduction;
  PUMICE_EXPECTS(false, "reduce = '", name, "': choose sum, mean, max or min");
}

namespace {

GraphHandle share(Csr pattern, StreamView stream) {
  return {std::make_shared<SharedGraph>(Graph(std::move(pattern), stream))};
}

GraphHandle create(nb::handle row, nb::handle column, std::int64_t rows, std::int64_t columns) {
  const Call call(row);
  const ConstTensorView to = call.view(row, "edge_index[1]");
  const ConstTensorView from = call.view(column, "edge_index[0]");
  const EntryNames names{.op = "Graph", .row = "edge_index[1]", .column = "edge_index[0]"};
  return share(call.run([&] { return Csr(rows, columns, to, from, names); }), call.stream());
}

nb::object in_use(nb::handle edges, nb::handle counts, std::int64_t count, std::int64_t sources,
                  std::int64_t targets, const std::string& label) {
  const Call call(edges);
  const ConstTensorView ends = call.view(edges, "edge_index");
  const ConstTensorView numbers = call.view(counts, "counts");
  const CountsOfEdges at{.edges = count, .sources = sources, .targets = targets};
  return call.give(
      call.run([&] { return edges_in_use(ends, numbers, at, label.c_str(), call.results()); }));
}

/// The transpose as a graph of its own, with the same numbers of entries.
GraphHandle turned(const GraphHandle& graph) {
  const StreamView home = home_of(graph);
  const Call call(home.device, home);
  return share(call.run([&] { return transposed(graph.view(), home); }), home);
}

/// From one GPU to another by the host.
GraphHandle copied(const GraphHandle& graph, const std::string& device) {
  const Device target = parse_device(device);
  if (home_of(graph).device.kind == DeviceKind::cpu) {
    const Call call(target);
    return share(call.run([&] { return copy_to(call.stream(), graph.view()); }), call.stream());
  }
  const Call call(home_of(graph).device, home_of(graph));
  const GraphHandle here = share(copy_to_host(graph.view(), home_of(graph)), {});
  return target.kind == DeviceKind::cpu ? here : copied(here, device);
}

/// Copies: (int64 [rows + 1], int32 [entries], int64 [entries] or None).
nb::tuple lists_of(const GraphHandle& graph) {
  const StreamView home = home_of(graph);
  const Call call(home.device, home);
  const CsrView view = graph.view();
  const auto copy = [&](const auto& list, DType dtype) {
    return python::share(pumice::copy_to(
        home, {list.data(), dtype, {static_cast<std::int64_t>(list.size())}, home}));
  };
  return nb::make_tuple(copy(view.row_begin, DType::i64), copy(view.column, DType::i32),
                        view.entry.empty() ? nb::none() : copy(view.entry, DType::i64));
}

nb::tuple multiply(const GraphHandle& graph, nb::handle values, nb::handle features,
                   const std::string& reduce, nb::handle bias) {
  const Call call(features, home_of(graph));
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView weights = call.view(values, "values");
  const ConstTensorView shift = call.view(bias, "bias");
  const EntryReduction reduction = reduction_of(reduce);
  FrameworkResults& results = call.results();
  const CsrView pattern = graph.view();
  const SpmmResult made = call.run([&] {
    return spmm(pattern, weights, x, reduction, {.output = results, .source = results}, nullptr,
                {.shift = shift});
  });
  return nb::make_tuple(call.give(made.output),
                        made.source.defined() ? call.give(made.source) : nb::none());
}

/// Into rows that are there.
void add_product(const GraphHandle& graph, nb::handle features, nb::handle rows,
                 const std::string& reduce) {
  const Call call(features, home_of(graph));
  const ConstTensorView x = call.view(features, "features");
  const TensorView to = mutable_view_of(rows, "rows", call.stream());
  const EntryReduction reduction = reduction_of(reduce);
  const Tensor place = hold(nb::borrow(rows), to.shape(), to.dtype(), call.stream());
  call.run([&] {
    return spmm(graph.view(), {}, x, reduction, {.output = place}, nullptr, {.residual = place});
  });
}

nb::object features_gradient(const GraphHandle& graph, nb::handle values, nb::handle grad_output,
                             nb::handle source, const std::string& reduce) {
  const Call call(grad_output, home_of(graph));
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView weights = call.view(values, "values");
  const ConstTensorView picked = call.view(source, "source");
  const EntryReduction reduction = reduction_of(reduce);
  return call.give(call.run([&] {
    const std::shared_ptr<const Csr> back = graph.backwards(call.stream());
    return spmm_features_gradient(graph.view(), back->view(), weights, g, picked, reduction,
                                  call.results());
  }));
}

nb::object values_gradient(const GraphHandle& graph, nb::handle features, nb::handle grad_output,
                           std::int64_t heads, nb::handle source, const std::string& reduce) {
  const Call call(grad_output, home_of(graph));
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  const ConstTensorView picked = call.view(source, "source");
  const EntryReduction reduction = reduction_of(reduce);
  return call.give(call.run([&] {
    return spmm_values_gradient(graph.view(), x, g, heads, picked, reduction, call.results());
  }));
}

nb::object multiply_dense(const GraphHandle& graph, nb::handle left, nb::handle right,
                          std::int64_t heads) {
  const Call call(left, home_of(graph));
  const ConstTensorView l = call.view(left, "left");
  const ConstTensorView r = call.view(right, "right");
  return call.give(call.run([&] { return sddmm(graph.view(), l, r, heads, call.results()); }));
}

/// What a call has of scores, [.., heads] each or None.
EdgeScores scores_of(const Call& call, nb::handle target, nb::handle source, nb::handle entry,
                     double negative_slope) {
  return {.target = call.view(target, "target"),
          .source = call.view(source, "source"),
          .entry = call.view(entry, "scores"),
          .negative_slope = negative_slope};
}

nb::object attend(const GraphHandle& graph, nb::handle target, nb::handle source, nb::handle entry,
                  double negative_slope) {
  const nb::handle like = !entry.is_none() ? entry : !target.is_none() ? target : source;
  PUMICE_EXPECTS(!like.is_none(), "scores, target and source are None: give one of them");
  const Call call(like, home_of(graph));
  const EdgeScores scores = scores_of(call, target, source, entry, negative_slope);
  return call.give(call.run([&] { return edge_softmax(graph.view(), scores, call.results()); }));
}

nb::tuple attend_gradient(const GraphHandle& graph, nb::handle target, nb::handle source,
                          nb::handle entry, double negative_slope, nb::handle output,
                          nb::handle grad_output) {
  const Call call(grad_output, home_of(graph));
  const EdgeScores scores = scores_of(call, target, source, entry, negative_slope);
  const ConstTensorView shares = call.view(output, "output");
  const ConstTensorView g = call.view(grad_output, "grad_output");
  FrameworkResults& results = call.results();
  const EdgeScoreGradients made = call.run([&] {
    const std::shared_ptr<const Csr> back =
        scores.source.defined() ? graph.backwards(call.stream()) : nullptr;
    return edge_softmax_gradient(graph.view(), back == nullptr ? CsrView() : back->view(), scores,
                                 shares, g,
                                 {.target = results, .source = results, .entry = results});
  });
  const auto given = [&](const Tensor& tensor) {
    return tensor.defined() ? call.give(tensor) : nb::none();
  };
  return nb::make_tuple(given(made.target), given(made.source), given(made.entry));
}

}   // namespace

void bind_graphs(nb::module_& module) {
  nb::class_<GraphHandle>(module, "Graph", "Which columns each row of a sparse matrix has.")
      .def_prop_ro("rows", [](const GraphHandle& graph) { return graph.view().rows; })
      .def_prop_ro("columns", [](const GraphHandle& graph) { return graph.view().columns; })
      .def_prop_ro("entries", [](const GraphHandle& graph) { return graph.view().entries(); })
      .def_prop_ro("device",
                   [](const GraphHandle& graph) { return to_string(home_of(graph).device); })
      .def("lists", &lists_of,
           "Copies of its lists: int64 [rows + 1] where each row begins, int32 [entries] columns, "
           "int64 [entries] numbers of the entries, None where these are their places.")
      .def("transposed", &turned, "Another graph, whose entries have the same numbers.")
      .def("copy_to", by_name(&copied, {Argument{"self"}, Argument{"device"}}), "device"_a.none());
  define(module, "create_graph", &create, "row"_a, "column"_a, "rows"_a, "columns"_a,
         "Of entries in any order, int32 or int64 [entries].");
  define(
      module, "edges_in_use", &in_use, "edge_index"_a, "counts"_a, "edges"_a, "sources"_a,
      "targets"_a, "label"_a,
      "A copy of int64 [2, room], in which ends of edges in use that there are not are reported, "
      "by the label, and become 0. `counts`, int64 [n], is read when the device comes to it; at "
      "`edges`, `sources` and `targets` it says how many there are. Does not wait.");
  define(module, "spmm", &multiply, "graph"_a, "values"_a.none(), "features"_a, "reduce"_a,
         "bias"_a.none(), "([rows, C], int64 [rows, C] entries that were picked, or None)");
  define(module, "add_spmm", &add_product, "graph"_a, "features"_a, "rows"_a, "reduce"_a,
         "Adds a sum or mean without values to rows [rows, C], where they lie.");
  define(module, "spmm_features_gradient", &features_gradient, "graph"_a, "values"_a.none(),
         "grad_output"_a, "source"_a.none(), "reduce"_a);
  define(module, "spmm_values_gradient", &values_gradient, "graph"_a, "features"_a, "grad_output"_a,
         "heads"_a, "source"_a.none(), "reduce"_a, "[entries, heads]");
  define(module, "sddmm", &multiply_dense, "graph"_a, "left"_a, "right"_a, "heads"_a,
         "[entries, heads]: the product of each entry's row and column.");
  define(module, "edge_softmax", &attend, "graph"_a, "target"_a.none(), "source"_a.none(),
         "scores"_a.none(), "negative_slope"_a,
         "[entries, heads]: the share of each entry in its row, of scores [rows, heads], [columns, "
         "heads] and [entries, heads].");
  define(module, "edge_softmax_gradient", &attend_gradient, "graph"_a, "target"_a.none(),
         "source"_a.none(), "scores"_a.none(), "negative_slope"_a, "output"_a, "grad_output"_a,
         "(of target, of source, of scores), None where there are none.");
}

}   // namespace pumice::python
