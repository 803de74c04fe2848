// Scores of additive attention.
#include <pumice/ops/edge_scores.hpp>

#include "arguments.hpp"
#include "graphs.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

/// What a call has of them; `entry` may be None.
AdditiveScores scores_of(const Call& call, nb::handle target, nb::handle source,
                         nb::handle attention, nb::handle entry, double negative_slope) {
  return {.target = call.view(target, "target"),
          .source = call.view(source, "source"),
          .attention = call.view(attention, "attention"),
          .entry = call.view(entry, "entry"),
          .negative_slope = negative_slope};
}

nb::object score(const GraphHandle& graph, nb::handle target, nb::handle source,
                 nb::handle attention, nb::handle entry, double negative_slope) {
  const Call call(target, home_of(graph));
  const AdditiveScores scores = scores_of(call, target, source, attention, entry, negative_slope);
  return call.give(call.run([&] { return edge_scores(graph.view(), scores, call.results()); }));
}

nb::tuple score_gradients(const GraphHandle& graph, nb::handle target, nb::handle source,
                          nb::handle attention, nb::handle entry, double negative_slope,
                          nb::handle grad_output) {
  const Call call(grad_output, home_of(graph));
  const AdditiveScores scores = scores_of(call, target, source, attention, entry, negative_slope);
  const ConstTensorView g = call.view(grad_output, "grad_output");
  FrameworkResults& results = call.results();
  const AdditiveScoreGradients made = call.run([&] {
    const std::shared_ptr<const Csr> back = graph.backwards(call.stream());
    return edge_scores_gradient(
        graph.view(), back->view(), scores, g,
        {.target = results, .source = results, .attention = results, .entry = results});
  });
  return nb::make_tuple(call.give(made.target), call.give(made.source), call.give(made.attention),
                        made.entry.defined() ? call.give(made.entry) : nb::none());
}

}   // namespace

void bind_edge_scores(nb::module_& module) {
  define(module, "edge_scores", &score, "graph"_a, "target"_a, "source"_a, "attention"_a,
         "entry"_a.none(), "negative_slope"_a,
         "[entries, heads], of rows [rows, C], [columns, C], [heads, C / heads] and [entries, C].");
  define(module, "edge_scores_gradient", &score_gradients, "graph"_a, "target"_a, "source"_a,
         "attention"_a, "entry"_a.none(), "negative_slope"_a, "grad_output"_a,
         "(of target, of source, of attention, of entry or None)");
}

}   // namespace pumice::python
