// Options, and the tensors beside a matrix.
#include "sparse_matrix.hpp"

#include <CLI/App.hpp>

#include <pumice/core/error.hpp>

#include "arguments.hpp"
#include "outputs.hpp"
#include "tensor_file.hpp"
#include "terminal.hpp"

namespace pumice::cli {

void add_sparse_options(CLI::App& command, SparseArguments& arguments, const char* in,
                        const char* out) {
  command
      .add_option(
          "MATRIX", arguments.matrix,
          "Matrix Market file (.mtx) of a line for each entry: real, integer or pattern, whose "
          "values are 1; a symmetric one stands for both triangles")
      ->required();
  command.add_option("IN", arguments.in, in)->required();
  command.add_option("OUT", arguments.out, out)->required();
  command.add_option("--device", arguments.device, "cpu, cuda or cuda:1")->capture_default_str();
  add_precision(command, arguments.precision,
                "Converts the tensors of IN and the values of the matrix; default: as in IN",
                false);
  add_threads(command);
  add_json(command, arguments.json);
}

void check_sparse(const SparseArguments& arguments) {
  check_outputs({arguments.matrix, arguments.in}, {{"OUT", arguments.out, Format::tensors}});
}

SparseInput::SparseInput(const SparseArguments& arguments,
                         std::initializer_list<std::string_view> names)
    : arguments_(arguments), file_(SafetensorsFile::open(arguments.in)) {
  check_names(file_, names);
}

Tensor SparseInput::rows(const char* name, std::int64_t rows, const char* whose) const {
  PUMICE_EXPECTS(file_.contains(name), file_.name(), ": tensor \"", name, "\" is missing");
  const Tensor tensor = file_.get(name);
  PUMICE_EXPECTS(tensor.shape().rank() == 2 && is_floating(tensor.dtype()) && tensor.rows() == rows,
                 file_.name(), ": ", name, " is ", name_of(tensor.dtype()), ' ',
                 to_string(tensor.shape()), " and the matrix has ", counted(rows, whose),
                 "; a floating type and [", rows, ", F] are needed");
  if (arguments_.precision.empty()) return tensor;
  return tensor.to(parse_precision(arguments_.precision, parse_device(arguments_.device)).dtype);
}

}   // namespace pumice::cli
