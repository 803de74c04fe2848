// The calls that `pumice bench sparse` measures, on random features.
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/formats/typed_graph.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/ops/rgms.hpp>
#include <pumice/ops/spmm.hpp>

#include "arguments.hpp"
#include "bench_sparse_calls.hpp"

namespace pumice::cli {
namespace {

class SparseBench {
 public:
  SparseBench(const EdgesInput& edges, const SparseBenchOptions& options, StreamView stream)
      : edges_(edges), options_(options), stream_(stream) {}

  std::vector<SparseFigure> run() {
    measure_patterns();
    for (const std::string& precision : options_.precisions) {
      for (const std::int64_t channels : options_.channels) {
        now_ = {.call = "", .precision = precision, .channels = channels};
        type_ = parse_precision(precision, stream_.device).dtype;
        measure_products();
        measure_samples();
        if (typed_) measure_relational();
      }
    }
    return std::move(figures_);
  }

 private:
  /// `gathers`: how many rows of features are read for each entry.
  void add(const char* name, int gathers, const std::function<void()>& call) {
    SparseFigure figure = now_;
    figure.call = name;
    figure.ms = measure(options_.repeat, stream_, call);
    figure.gathered_bytes = static_cast<double>(gathers) * static_cast<double>(edges_.entries()) *
                            static_cast<double>(now_.channels) *
                            static_cast<double>(size_of(type_));
    auto known = copies_.find(figure.gathered_bytes);
    if (known == copies_.end())
      known = copies_
                  .emplace(figure.gathered_bytes,
                           copy_ms(figure.gathered_bytes, options_.repeat, stream_))
                  .first;
    figure.copy_ms = known->second;
    figures_.push_back(figure);
  }

  Tensor random(Shape shape, std::uint64_t seed) const {
    return copy_to(stream_, random_tensor(shape, type_, seed));
  }

  void measure_patterns() {
    const Tensor row = copy_to(stream_, edges_.row), column = copy_to(stream_, edges_.column);
    add("pattern", 0, [&] { pattern_ = Csr(edges_.rows, edges_.columns, row, column); });
    add("transpose", 0, [&] { transpose_ = transposed(pattern_.view(), stream_); });
    if (!edges_.has_types()) return;
    add("typed graph", 0, [&] {
      typed_.emplace(edges_.rows, edges_.columns, edges_.relations, edges_.row, edges_.column,
                     edges_.type, stream_);
    });
  }

  void measure_products() {
    const CsrView pattern = pattern_.view(), backwards = transpose_.view();
    const Tensor x = random({edges_.columns, now_.channels}, 1);
    const Tensor grad = random({edges_.rows, now_.channels}, 2);
    const Tensor values = random({edges_.entries()}, 3);
    add("spmm sum", 1, [&] { (void)spmm(pattern, values, x); });
    add("spmm sum, gradient of features", 1,
        [&] { (void)spmm_features_gradient(pattern, backwards, values, grad); });
    add("spmm sum, gradient of values", 1, [&] { (void)spmm_values_gradient(pattern, x, grad); });
    Tensor source;
    add("spmm max", 1, [&] { source = spmm(pattern, {}, x, EntryReduction::max).source; });
    add("spmm max, gradient of features", 1, [&] {
      (void)spmm_features_gradient(pattern, backwards, {}, grad, source, EntryReduction::max);
    });
  }

  void measure_samples() {
    const CsrView pattern = pattern_.view(), backwards = transpose_.view();
    const Tensor left = random({edges_.rows, now_.channels}, 4);
    const Tensor right = random({edges_.columns, now_.channels}, 5);
    const Tensor grad = random({edges_.entries()}, 6);
    add("sddmm", 1, [&] { (void)sddmm(pattern, left, right); });
    add("sddmm, gradients of both sides", 2, [&] {
      (void)spmm(pattern, grad, right);
      (void)spmm(backwards, grad, left);
    });
  }

  void measure_relational() {
    const TypedGraphView graph = typed_->view_both_ways();
    const Tensor x = random({edges_.columns, now_.channels}, 7);
    const Tensor grad = random({edges_.rows, now_.channels}, 8);
    const Tensor weight = random({edges_.relations, now_.channels, now_.channels}, 9);
    RgmsResult made;
    add("rgms", 1, [&] { made = rgms(graph, {}, x, weight); });
    add("rgms, gradients of features and weight", 1,
        [&] { (void)rgms_gradients(graph, {}, x, weight, made.gathered, {}, grad); });
  }

  const EdgesInput& edges_;
  const SparseBenchOptions& options_;
  StreamView stream_;
  Csr pattern_, transpose_;
  std::optional<TypedGraph> typed_;
  DType type_ = DType::f32;
  SparseFigure now_;
  std::map<double, double> copies_;   // milliseconds by bytes
  std::vector<SparseFigure> figures_;
};

}   // namespace

std::vector<SparseFigure> measure_sparse(const EdgesInput& edges, const SparseBenchOptions& options,
                                         StreamView stream) {
  return SparseBench(edges, options, stream).run();
}

}   // namespace pumice::cli
