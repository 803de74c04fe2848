// `pumice spmm`: a sparse matrix times features from file to file, forward and backward. It is how
// anyone compares Pumice with another system.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/ops/spmm.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "options.hpp"
#include "sparse_matrix.hpp"
#include "step_timer.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct SpmmArguments : SparseArguments {
  std::string reduce = "sum";
};

EntryReduction parse_reduce(const std::string& name) {
  if (name == "mean") return EntryReduction::mean;
  if (name == "max") return EntryReduction::max;
  if (name == "min") return EntryReduction::min;
  return EntryReduction::sum;
}

/// The value of each entry: that of its line, with its sign.
Tensor values_of(const MatrixLines& lines, const MatrixEntries& entries, DType type) {
  Tensor values({entries.row.rows()}, DType::f64);
  for (std::int64_t e = 0; e < values.rows(); ++e)
    values.data<double>()[e] = lines.value.data<double>()[entries.line.data<std::int64_t>()[e]] *
                               entries.sign.data<double>()[e];
  return values.to(type);
}

/// One number for each line: the sum over its entries.
Tensor of_lines(const MatrixLines& lines, const MatrixEntries& entries, const Tensor& of_entries) {
  Tensor sums = Tensor::zeros({lines.row.rows()}, DType::f64);
  const Tensor wide = of_entries.to(DType::f64);
  for (std::int64_t e = 0; e < entries.row.rows(); ++e)
    sums.data<double>()[entries.line.data<std::int64_t>()[e]] +=
        wide.data<double>()[e] * entries.sign.data<double>()[e];
  return sums.to(of_entries.dtype());
}

void multiply(const SpmmArguments& arguments) {
  check_sparse(arguments);
  const MatrixLines lines = read_matrix_market(arguments.matrix);
  const MatrixEntries entries = entries_of(lines);
  const SparseInput input(arguments, {"features", "grad_output"});
  const Tensor x = input.rows("features", lines.columns, "column");
  const EntryReduction reduction = parse_reduce(arguments.reduce);
  const Tensor values = values_of(lines, entries, x.dtype());

  const Stream stream(parse_device(arguments.device));
  const Tensor x_there = copy_to(stream, x), values_there = copy_to(stream, values);
  StepTimer timer(stream);
  const Csr here(lines.rows, lines.columns, entries.row, entries.column);
  const Csr csr = copy_to(stream, here.view());
  const double pattern_ms = timer.wait_and_lap();
  const SpmmResult made = spmm(csr.view(), values_there, x_there, reduction);
  const double forward_ms = timer.wait_and_lap();

  const Tensor features = copy_to_host(made.output, stream);
  std::vector<std::pair<std::string, ConstTensorView>> written{{"features", features}};
  Tensor grad_features, grad_values;
  if (input.has("grad_output")) {
    const Tensor given = input.rows("grad_output", lines.rows, "row");
    PUMICE_EXPECTS(given.shape() == features.shape() && given.dtype() == x.dtype(),
                   printable_path(arguments.in), ": grad_output is ", name_of(given.dtype()), ' ',
                   to_string(given.shape()), " and the result ", name_of(x.dtype()), ' ',
                   to_string(features.shape()), "; they must agree");
    const Tensor gradient = copy_to(stream, given);
    const Csr transpose = transposed(here.view());
    const Csr back = copy_to(stream, transpose.view());
    const ConstTensorView source = made.source.defined() ? made.source.view() : ConstTensorView();
    grad_features = copy_to_host(
        spmm_features_gradient(csr.view(), back.view(), values_there, gradient, source, reduction),
        stream);
    const Tensor of_entries = copy_to_host(
        spmm_values_gradient(csr.view(), x_there, gradient, 1, source, reduction), stream);
    grad_values = of_lines(lines, entries, of_entries);
    written.emplace_back("grad_features", grad_features);
    written.emplace_back("grad_values", grad_values);
  }
  write_safetensors(arguments.out, written);

  if (arguments.json) {
    print_json(nlohmann::ordered_json{{"rows", lines.rows},
                                      {"columns", lines.columns},
                                      {"entries", entries.row.rows()},
                                      {"channels", x.extent(1)},
                                      {"reduce", arguments.reduce},
                                      {"pattern_ms", pattern_ms},
                                      {"forward_ms", forward_ms},
                                      {"out", arguments.out}});
    return;
  }
  fmt::print("{} x {} with {}, {} of {}\npattern {:.2f} ms, forward {:.2f} ms\nwritten to {}\n",
             lines.rows, lines.columns, counted(entries.row.rows(), "entry", "entries"),
             arguments.reduce, counted(x.extent(1), "channel"), pattern_ms, forward_ms,
             printable_path(arguments.out));
}

}   // namespace

void add_spmm_command(CLI::App& app) {
  const auto arguments = std::make_shared<SpmmArguments>();
  CLI::App* command =
      app.add_subcommand("spmm", "Multiply a sparse matrix and the features of a safetensors file");
  add_sparse_options(*command, *arguments, "features [columns, F]; optional grad_output [rows, F]",
                     "features [rows, F], and with grad_output grad_features [columns, F] and "
                     "grad_values, one number for each line of the matrix");
  command
      ->add_option("--reduce", arguments->reduce,
                   "What becomes of the entries of a row; 0 where it has none")
      ->check(CLI::IsMember({"sum", "mean", "max", "min"}))
      ->capture_default_str();
  command->callback([arguments] { multiply(*arguments); });
}

}   // namespace pumice::cli
