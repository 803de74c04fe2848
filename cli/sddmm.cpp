// `pumice sddmm`: dot products at the places that a sparse matrix has, from file to file.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/ops/spmm.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "sparse_matrix.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct SddmmArguments : SparseArguments {
  bool scale = false;
};

void sample(const SddmmArguments& arguments) {
  check_sparse(arguments);
  const MatrixLines lines = read_matrix_market(arguments.matrix);
  const SparseInput input(arguments, {"left", "right"});
  const Tensor left = input.rows("left", lines.rows, "row");
  const Tensor right = input.rows("right", lines.columns, "column");
  const Stream stream(parse_device(arguments.device));
  const Csr here(lines.rows, lines.columns, lines.row, lines.column);
  const Csr csr = copy_to(stream, here.view());
  const Tensor made =
      copy_to_host(sddmm(csr.view(), copy_to(stream, left), copy_to(stream, right)), stream);
  Tensor values = made.to(DType::f64);
  for (std::int64_t l = 0; arguments.scale && l < values.rows(); ++l)
    values.data<double>()[l] *= lines.value.data<double>()[l];
  values = values.to(made.dtype());
  const ConstTensorView list(values.raw(), values.dtype(), {values.rows()});
  const NamedTensor written[] = {{"values", list}};
  write_safetensors(arguments.out, written);

  if (arguments.json) {
    print_json(nlohmann::ordered_json{{"rows", lines.rows},
                                      {"columns", lines.columns},
                                      {"lines", values.rows()},
                                      {"channels", left.extent(1)},
                                      {"out", arguments.out}});
    return;
  }
  fmt::print("{} x {}, {} of {}\nwritten to {}\n", lines.rows, lines.columns,
             counted(values.rows(), "line"), counted(left.extent(1), "channel"),
             printable_path(arguments.out));
}

}   // namespace

void add_sddmm_command(CLI::App& app) {
  const auto arguments = std::make_shared<SddmmArguments>();
  CLI::App* command = app.add_subcommand(
      "sddmm", "Dot products of rows and columns at the places of a sparse matrix");
  add_sparse_options(*command, *arguments, "left [rows, F] and right [columns, F]",
                     "values: for each line of the matrix the dot product of its row and column");
  command->add_flag("--scale", arguments->scale, "Times the values of the matrix");
  command->callback([arguments] { sample(*arguments); });
}

}   // namespace pumice::cli
