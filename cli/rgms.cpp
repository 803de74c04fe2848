// `pumice rgms`: relational products from file to file, forward and backward. It is how anyone
// compares Pumice with another system.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/ops/rgms.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "graph_file.hpp"
#include "outputs.hpp"
#include "step_timer.hpp"
#include "tensor_file.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct RgmsArguments {
  std::string in;
  std::string out;
  std::string device = "cpu";
  std::string precision;   // empty: as in the file
  bool json = false;
};

/// Tensors of IN.
class Input {
 public:
  explicit Input(const RgmsArguments& arguments)
      : arguments_(arguments), file_(SafetensorsFile::open(arguments.in)) {
    check_names(file_,
                {"features", "edge_index", "edge_type", "weight", "edge_weight", "grad_output"});
  }

  bool has(const char* name) const { return file_.contains(name); }

  /// UserError where it is missing, or is not of this type and rank.
  Tensor whole_numbers(const char* name, int rank, const char* shape) const {
    const Tensor tensor = get(name);
    PUMICE_EXPECTS(tensor.dtype() == DType::i64 && tensor.shape().rank() == rank, file_.name(),
                   ": ", name, " is ", name_of(tensor.dtype()), ' ', to_string(tensor.shape()),
                   "; i64 ", shape, " is needed");
    return tensor;
  }
  /// In the precision that was asked for.
  Tensor floats(const char* name, int rank, const char* shape) const {
    const Tensor tensor = get(name);
    PUMICE_EXPECTS(is_floating(tensor.dtype()) && tensor.shape().rank() == rank, file_.name(), ": ",
                   name, " is ", name_of(tensor.dtype()), ' ', to_string(tensor.shape()),
                   "; a floating type and ", shape, " are needed");
    if (arguments_.precision.empty()) return tensor;
    return tensor.to(parse_precision(arguments_.precision, parse_device(arguments_.device)).dtype);
  }
  const std::string& name() const { return file_.name(); }

 private:
  Tensor get(const char* name) const {
    PUMICE_EXPECTS(file_.contains(name), file_.name(), ": tensor \"", name, "\" is missing");
    return file_.get(name);
  }

  const RgmsArguments& arguments_;
  SafetensorsFile file_;
};

ConstTensorView row_of(const Tensor& matrix, std::int64_t row) {
  return {matrix.data<std::int64_t>() + row * matrix.extent(1), DType::i64, {matrix.extent(1)}};
}

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView();
}

void multiply(const RgmsArguments& arguments) {
  check_outputs({arguments.in}, {{"OUT", arguments.out, Format::tensors}});
  const Input input(arguments);
  const Tensor x = input.floats("features", 2, "[nodes, C_in]");
  const Tensor weight = input.floats("weight", 3, "[relations, C_in, C_out]");
  const Tensor edge_index = input.whole_numbers("edge_index", 2, "[2, edges]");
  const Tensor edge_type = input.whole_numbers("edge_type", 1, "[edges]");
  PUMICE_EXPECTS(edge_index.extent(0) == 2 && edge_index.extent(1) == edge_type.rows(),
                 input.name(), ": edge_index is ", to_string(edge_index.shape()), " and edge_type ",
                 to_string(edge_type.shape()),
                 "; [2, edges], sources and targets, and [edges] are needed");
  check_nodes(input.name(), edge_index, x.rows());
  check_relations(input.name(), edge_type, weight.extent(0));
  Tensor values;
  if (input.has("edge_weight")) values = input.floats("edge_weight", 1, "[edges]");
  PUMICE_EXPECTS(!values.defined() || values.rows() == edge_type.rows(), input.name(),
                 ": edge_weight is ", to_string(values.shape()), " and there are ",
                 edge_type.rows(), " edges; [edges] is needed");

  const Stream stream(parse_device(arguments.device));
  const auto there = [&](const Tensor& tensor) {
    return tensor.defined() ? copy_to(stream, tensor) : Tensor();
  };
  const Tensor x_there = there(x), weight_there = there(weight), values_there = there(values);
  StepTimer timer(stream);
  TypedGraph graph(x.rows(), x.rows(), weight.extent(0), row_of(edge_index, 1),
                   row_of(edge_index, 0), edge_type, stream);
  const double graph_ms = timer.wait_and_lap();
  const RgmsResult made = rgms(graph.view(), view_of(values_there), x_there, weight_there);
  const double forward_ms = timer.wait_and_lap();

  const Tensor features = copy_to_host(made.output, stream);
  std::vector<std::pair<std::string, Tensor>> results{{"features", features}};
  if (input.has("grad_output")) {
    const Tensor given = input.floats("grad_output", 2, "[nodes, C_out]");
    PUMICE_EXPECTS(given.shape() == features.shape() && given.dtype() == features.dtype(),
                   input.name(), ": grad_output is ", name_of(given.dtype()), ' ',
                   to_string(given.shape()), " and the result ", name_of(features.dtype()), ' ',
                   to_string(features.shape()), "; they must agree");
    const RgmsGradients gradients =
        rgms_gradients(graph.view_both_ways(), view_of(values_there), x_there, weight_there,
                       made.gathered, {}, there(given));
    results.emplace_back("grad_features", copy_to_host(gradients.features, stream));
    results.emplace_back("grad_weight", copy_to_host(gradients.weight, stream));
    if (values.defined())
      results.emplace_back("grad_edge_weight", copy_to_host(gradients.values, stream));
  }
  std::vector<std::pair<std::string, ConstTensorView>> written;
  for (const auto& [name, tensor] : results) {
    ConstTensorView view = tensor;
    if (name == "grad_edge_weight") view = {tensor.raw(), tensor.dtype(), {tensor.rows()}};
    written.emplace_back(name, view);
  }
  write_safetensors(arguments.out, written);

  if (arguments.json) {
    print_json(nlohmann::ordered_json{{"nodes", x.rows()},
                                      {"edges", edge_type.rows()},
                                      {"relations", weight.extent(0)},
                                      {"segments", graph.view().segments->rows()},
                                      {"graph_ms", graph_ms},
                                      {"forward_ms", forward_ms},
                                      {"out", arguments.out}});
    return;
  }
  fmt::print("{} and {} of {}, {}\ngraph {:.2f} ms, forward {:.2f} ms\nwritten to {}\n",
             counted(x.rows(), "node"), counted(edge_type.rows(), "edge"),
             counted(weight.extent(0), "relation"),
             counted(graph.view().segments->rows(), "segment"), graph_ms, forward_ms,
             printable_path(arguments.out));
}

}   // namespace

void add_rgms_command(CLI::App& app) {
  const auto arguments = std::make_shared<RgmsArguments>();
  CLI::App* command = app.add_subcommand(
      "rgms", "Relational products of the features, edges and weights of a safetensors file");
  command
      ->add_option(
          "IN", arguments->in,
          "features [nodes, C_in], edge_index i64 [2, edges] (sources, targets), edge_type "
          "i64 [edges], weight [relations, C_in, C_out]; optional edge_weight [edges] and "
          "grad_output [nodes, C_out]")
      ->required();
  command
      ->add_option("OUT", arguments->out,
                   "features [nodes, C_out], and with grad_output grad_features, grad_weight and, "
                   "where there are edge weights, grad_edge_weight")
      ->required();
  command->add_option("--device", arguments->device, "cpu, cuda or cuda:1")->capture_default_str();
  add_precision(*command, arguments->precision, "Converts the tensors of IN; default: as in IN",
                false);
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments] { multiply(*arguments); });
}

}   // namespace pumice::cli
