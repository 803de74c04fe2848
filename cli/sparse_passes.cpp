// Features of ones: their values do not matter to the time of a product.
#include "sparse_passes.hpp"

#include <fmt/format.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/ops/edge_scores.hpp>
#include <pumice/ops/spmm.hpp>

#include "arguments.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

Csr pattern_of(const EdgesInput& edges) {
  return Csr(edges.rows, edges.columns, edges.row, edges.column);
}

void check(const SparsePassArguments& arguments) {
  PUMICE_EXPECTS(arguments.channels >= 1 && arguments.channels <= kMostChannels, "--channels ",
                 arguments.channels, ": features have 1 to ", kMostChannels);
  PUMICE_EXPECTS(arguments.heads >= 1 && arguments.channels % arguments.heads == 0, "--heads ",
                 arguments.heads, " of ", arguments.channels, " channels: give a divisor");
  const bool is_spmm = arguments.op == "spmm";
  PUMICE_EXPECTS(is_spmm || arguments.reduce == "sum", "--reduce ", arguments.reduce,
                 ": only spmm reduces entries; leave it out");
  PUMICE_EXPECTS(is_spmm || !arguments.training, "--training of ", arguments.op,
                 ": its gradients are products of spmm; explain those, with --operator spmm");
}

}   // namespace

void add_sparse_pass(CLI::App& command, SparsePassArguments& arguments) {
  command
      .add_option("MATRIX", arguments.matrix,
                  "Matrix Market file (.mtx), or a safetensors file or folder of edges as `pumice "
                  "rgcn` takes it")
      ->required();
  command.add_option("--channels", arguments.channels, "Of the features")->capture_default_str();
  command.add_option("--heads", arguments.heads, "That the channels are cut into")
      ->capture_default_str();
  command
      .add_option("--operator", arguments.op,
                  "spmm: rows reduced; sddmm: a product for each entry; edge_scores: a score of "
                  "attention for each entry")
      ->check(CLI::IsMember({"spmm", "sddmm", "edge_scores"}))
      ->capture_default_str();
  command.add_option("--reduce", arguments.reduce, "spmm: what becomes of the entries of a row")
      ->check(CLI::IsMember({"sum", "mean", "max", "min"}))
      ->capture_default_str();
  command.add_flag("--unweighted", arguments.unweighted, "spmm: entries have no values");
  command.add_flag("--training", arguments.training, "spmm: gradients too");
  command.add_option("--device", arguments.device, "cpu, cuda or cuda:1")->capture_default_str();
  command.add_option("--precision", arguments.precision, "Of the features")
      ->check(CLI::IsMember({"f32", "f64", "f16", "bf16"}))
      ->capture_default_str();
  add_threads(command);
  add_json(command, arguments.json);
}

SparsePasses::SparsePasses(const SparsePassArguments& arguments)
    : arguments_(arguments), stream_(parse_device(arguments.device)) {
  check(arguments);
  const DType type = parse_precision(arguments.precision, parse_device(arguments.device)).dtype;
  edges_ = read_edges(arguments.matrix);
  const Csr here = pattern_of(edges_);
  pattern_ = copy_to(stream_, here.view());
  if (arguments.training) {
    const Csr back = transposed(here.view());
    backwards_ = copy_to(stream_, back.view());
  }
  const auto ones = [&](std::int64_t rows, std::int64_t channels) {
    return copy_to(stream_, Tensor::full({rows, channels}, type, 1));
  };
  left_ = ones(edges_.rows, arguments.channels);
  right_ = ones(edges_.columns, arguments.channels);
  if (arguments.op == "spmm" && !arguments.unweighted)
    values_ = ones(edges_.entries(), arguments.heads);
  if (arguments.op == "edge_scores")
    attention_ = ones(arguments.heads, arguments.channels / arguments.heads);
}

void SparsePasses::run() {
  const CsrView view = pattern_.view();
  switch (parse_sparse_operator(arguments_.op)) {
    case SparseOperator::sddmm: (void)sddmm(view, left_, right_, arguments_.heads); return;
    case SparseOperator::edge_scores:
      (void)edge_scores(view, {.target = left_,
                               .source = right_,
                               .attention = attention_,
                               .entry = {},
                               .negative_slope = 0.2});
      return;
    case SparseOperator::spmm: break;
  }
  const EntryReduction reduction = parse_entry_reduction(arguments_.reduce);
  const ConstTensorView values = values_.defined() ? values_.view() : ConstTensorView();
  const SpmmResult made = spmm(view, values, right_, reduction);
  if (!arguments_.training) return;
  const ConstTensorView source = made.source.defined() ? made.source.view() : ConstTensorView();
  (void)spmm_features_gradient(view, backwards_.view(), values, left_, source, reduction);
  if (values.defined())
    (void)spmm_values_gradient(view, right_, left_, arguments_.heads, source, reduction);
}

NetworkPasses SparsePasses::passes() {
  return {.run = [this](int) { run(); }, .stream = stream_};
}

std::string SparsePasses::title() const {
  return fmt::format("{}, {} {}, {}, {}", edges_.name, arguments_.op, arguments_.precision,
                     counted(arguments_.channels, "channel"), arguments_.device);
}

void expect_positionals(CLI::App& command) {
  CLI::Option* first = nullptr;
  for (CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    option->required();   // which error messages read
    if (option->count() == 0 && first == nullptr) first = option;
  }
  if (first != nullptr) throw CLI::RequiredError(first->get_name(true));
}

}   // namespace pumice::cli
