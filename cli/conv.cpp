// `pumice conv`: one convolution from file to file, forward and backward. It is how anyone compares
// Pumice with another system.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/copy.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/ops/convolution.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "options.hpp"
#include "outputs.hpp"
#include "step_timer.hpp"
#include "tensor_file.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct ConvArguments {
  std::string in;
  std::string out;
  std::vector<std::int32_t> kernel;
  std::vector<std::int32_t> stride;
  std::vector<std::int32_t> padding;
  std::vector<std::int32_t> dilation;
  std::vector<std::int32_t> spatial_shape;
  std::string mode = "submanifold";
  std::string outputs = "dilating";
  bool outputs_given = false;
  std::string kernel_shape = "hypercube";
  std::string dataflow;
  std::string device = "cpu";
  std::string precision;
  bool deterministic = false;
  bool json = false;
};

/// The tensors of the input file, checked for what the rest relies on.
struct ConvInput {
  Tensor coords;
  Tensor features;
  Tensor weight;
  Tensor bias;
  Tensor target_coords;
  Tensor grad_output;
  int dimension = 0;
  std::int64_t groups = 1;
};

ConvInput read_input(const std::string& given) {
  const SafetensorsFile file = SafetensorsFile::open(given);
  const std::string& path = file.name();
  check_names(file, {"coords", "features", "weight", "bias", "target_coords", "grad_output"});
  const auto required = [&](const char* name) {
    PUMICE_EXPECTS(file.contains(name), path, ": tensor \"", name,
                   "\" is missing; coords, features and weight are needed");
    return file.get(name);
  };
  const auto optional = [&](const char* name) {
    return file.contains(name) ? file.get(name) : Tensor();
  };
  ConvInput input{required("coords"), required("features"),      required("weight"),
                  optional("bias"),   optional("target_coords"), optional("grad_output")};
  PUMICE_EXPECTS(input.coords.dtype() == DType::i32 && input.coords.shape().rank() == 2 &&
                     input.coords.extent(1) >= 2 && input.coords.extent(1) <= 1 + kMaxDimension,
                 path, ": coords is ", name_of(input.coords.dtype()), ' ',
                 to_string(input.coords.shape()),
                 "; int32 [N, 1 + axes] with 1 to 4 axes is needed");
  PUMICE_EXPECTS(input.features.shape().rank() == 2 && input.features.rows() == input.coords.rows(),
                 path, ": features is ", to_string(input.features.shape()), " beside ",
                 counted(input.coords.rows(), "row"),
                 " of coords; [N, C_in] with the same N is needed");
  PUMICE_EXPECTS(input.weight.shape().rank() == 3, path, ": weight is ",
                 to_string(input.weight.shape()), "; [K, C_in / groups, C_out] is needed");
  PUMICE_EXPECTS(input.weight.dtype() == input.features.dtype(), path, ": weight is ",
                 name_of(input.weight.dtype()), " and features are ",
                 name_of(input.features.dtype()), "; give both the same type");
  PUMICE_EXPECTS(
      !input.bias.defined() ||
          (is_floating(input.bias.dtype()) && input.bias.shape() == Shape{input.weight.extent(2)}),
      path, ": bias is ", name_of(input.bias.dtype()), ' ', to_string(input.bias.shape()),
      "; a floating type and one value an output channel, [", input.weight.extent(2),
      "], are needed");
  PUMICE_EXPECTS(
      !input.grad_output.defined() || input.grad_output.dtype() == input.features.dtype(), path,
      ": grad_output is ", name_of(input.grad_output.dtype()), " and features are ",
      name_of(input.features.dtype()), "; give both the same type");
  PUMICE_EXPECTS(
      !input.target_coords.defined() ||
          (input.target_coords.dtype() == DType::i32 && input.target_coords.shape().rank() == 2 &&
           input.target_coords.extent(1) == input.coords.extent(1)),
      path, ": target_coords is ", name_of(input.target_coords.dtype()), ' ',
      to_string(input.target_coords.shape()), " and coords ", to_string(input.coords.shape()),
      "; int32 [M, ", input.coords.extent(1), "] is needed");
  const std::int64_t per_group = input.weight.extent(1);
  PUMICE_EXPECTS(per_group > 0 && input.features.extent(1) % per_group == 0, path,
                 ": weight takes ", counted(per_group, "channel"), " and features have ",
                 input.features.extent(1),
                 "; C_in must be a multiple of the second extent of weight");
  input.dimension = static_cast<int>(input.coords.extent(1)) - 1;
  input.groups = input.features.extent(1) / per_group;
  return input;
}

KernelWindow window_of(const ConvArguments& arguments, int dimension) {
  const Axes size = per_axis(arguments.kernel, dimension, 3, "--kernel");
  const Axes dilation = per_axis(arguments.dilation, dimension, 1, "--dilation");
  const bool submanifold = arguments.mode == "submanifold";
  KernelWindow window =
      submanifold ? submanifold_window(dimension, size, dilation) : KernelWindow{};
  window.dimension = dimension;
  window.size = size;
  window.dilation = dilation;
  window.stride = per_axis(arguments.stride, dimension, 1, "--stride");
  if (!arguments.padding.empty() || !submanifold) {
    window.padding = per_axis(arguments.padding, dimension, 0, "--padding");
  }
  window.shape =
      arguments.kernel_shape == "hypercross" ? KernelShape::hypercross : KernelShape::hypercube;
  validate(window);
  return window;
}

/// A map and the direction it is read in. Inverse: the forward map, transposed.
struct MapInUse {
  KernelMapPtr map;
  KernelMapView view;
  CoordinateSetPtr out;
};

/// Options and tensors of which each would be without effect beside the others.
void check_targets(const ConvArguments& arguments, bool given) {
  const std::string& mode = arguments.mode;
  const bool needed = mode == "transposed" || mode == "inverse";
  PUMICE_EXPECTS(given || !needed, "--mode ", mode, ": tensor \"target_coords\" is missing in ",
                 arguments.in, "; it says which sites the result has");
  PUMICE_EXPECTS(!given || needed || mode == "strided", "--mode ", mode,
                 " finds the sites of its result itself, but ", arguments.in,
                 " holds tensor \"target_coords\"; leave it out or choose another mode");
  PUMICE_EXPECTS(!given || arguments.spatial_shape.empty(),
                 "--spatial-shape cuts the sites of a result, but tensor \"target_coords\" in ",
                 arguments.in, " says which there are; leave one of them out");
  PUMICE_EXPECTS(!arguments.outputs_given || mode == "strided", "--outputs ", arguments.outputs,
                 " is about --mode strided; leave it out of --mode ", mode);
  PUMICE_EXPECTS(!arguments.outputs_given || !given, "--outputs ", arguments.outputs,
                 " says how sites are found, but tensor \"target_coords\" in ", arguments.in,
                 " says which there are; leave one of them out");
}

/// What is wrong with coordinates, with the tensor they come from.
CoordinateSetPtr make_set(const std::string& path, const char* name, const Tensor& coordinates,
                          const CoordinateOptions& options) {
  try {
    return CoordinateSet::create(coordinates, options);
  } catch (const UserError& error) {
    throw UserError(printable_path(path) + ": tensor \"" + name + "\": " + error.what());
  }
}

MapInUse build_map(const ConvArguments& arguments, const ConvInput& input,
                   const KernelWindow& window, StreamView stream) {
  CoordinateOptions options;
  if (!arguments.spatial_shape.empty()) {
    options.spatial_shape =
        per_axis(arguments.spatial_shape, input.dimension, 0, "--spatial-shape");
  }
  const CoordinateSetPtr in =
      CoordinateSet::copy_to(make_set(arguments.in, "coords", input.coords, options), stream);
  const auto target = [&] {
    return CoordinateSet::copy_to(make_set(arguments.in, "target_coords", input.target_coords, {}),
                                  stream);
  };
  const StridedOutputs outputs =
      arguments.outputs == "cell" ? StridedOutputs::cell : StridedOutputs::dilating;

  KernelMapPtr map;
  if (arguments.mode == "submanifold") {
    map = submanifold_map(in, window);
  } else if (arguments.mode == "strided") {
    map = input.target_coords.defined() ? map_between(in, target(), window)
                                        : strided_map(in, window, outputs);
  } else if (arguments.mode == "transposed") {
    map = transposed_map(in, target(), window);
  } else if (arguments.mode == "generative") {
    map = generative_map(in, window);
  } else {
    const CoordinateSetPtr fine = target();
    map = map_between(fine, in, window);
    return {map, transposed(map->view()), fine};
  }
  return {map, map->view(), map->out()};
}

/// Converts what is multiplied to the type that was asked for.
void convert(ConvInput& input, DType type) {
  for (Tensor* tensor : {&input.features, &input.weight, &input.grad_output}) {
    if (tensor->defined()) *tensor = tensor->to(type);
  }
}

/// What a convolution made, on the host.
struct ConvResult {
  Tensor coords, features;
  Tensor grad_features, grad_weight, grad_bias;   // undefined without grad_output
  PlanPtr plan;                                   // of the forward pass
  std::int64_t pairs = 0;                         // 0 where only the device knows
  double map_ms = 0, forward_ms = 0;
};

ConvResult compute(const ConvArguments& arguments, const ConvInput& input,
                   const KernelWindow& window, bool tf32, StreamView stream) {
  const auto there = [&](const Tensor& tensor) {
    return tensor.defined() ? copy_to(stream, tensor) : Tensor();
  };
  const Tensor x = there(input.features);
  const Tensor weight = there(input.weight);
  const Tensor gradient = there(input.grad_output);
  const Tensor bias = input.bias.defined()
                          ? there(input.bias.to(x.dtype() == DType::f64 ? DType::f64 : DType::f32))
                          : Tensor();
  ConvResult result;
  StepTimer timer(stream);
  const MapInUse used = build_map(arguments, input, window, stream);
  result.map_ms = timer.wait_and_lap();

  ConvolutionOptions options;
  options.groups = input.groups;
  options.numerics = {.deterministic = arguments.deterministic, .tf32 = tf32};
  if (!arguments.dataflow.empty()) options.dataflow = parse_dataflow(arguments.dataflow);
  if (bias.defined()) options.epilogue.shift = bias;
  // Of arguments that fit, which the operator says in sentences where they do not.
  const Tensor y = convolution(x, weight, used.view, options);
  result.plan = plan_of(convolution_problem(x, weight, used.view, options), used.view, options);
  result.forward_ms = timer.wait_and_lap();
  result.coords = copy_to_host(used.out->coordinates(), stream);
  result.features = copy_to_host(y, stream);
  if (stream.device.kind == DeviceKind::cpu) result.pairs = used.map->pairs();
  if (!gradient.defined()) return result;

  PUMICE_EXPECTS(gradient.shape() == y.shape(), printable_path(arguments.in), ": grad_output is ",
                 to_string(gradient.shape()), " and the result is ", to_string(y.shape()),
                 "; they must agree");
  options.epilogue = {};   // the bias has no part in these two
  result.grad_features =
      copy_to_host(convolution_input_gradient(gradient, weight, used.view, options), stream);
  options.dataflow.reset();
  result.grad_weight =
      copy_to_host(convolution_weight_gradient(x, gradient, used.view, options), stream);
  if (bias.defined()) result.grad_bias = copy_to_host(bias_gradient(gradient), stream);
  return result;
}

void write_result(const std::string& path, const ConvResult& result) {
  std::vector<std::pair<std::string, ConstTensorView>> written{{"coords", result.coords},
                                                               {"features", result.features}};
  const auto add = [&](const char* name, const Tensor& tensor) {
    if (tensor.defined()) written.emplace_back(name, tensor);
  };
  add("grad_features", result.grad_features);
  add("grad_weight", result.grad_weight);
  add("grad_bias", result.grad_bias);
  write_safetensors(path, written);
}

void convolve(const ConvArguments& arguments) {
  check_outputs({arguments.in}, {{"OUT", arguments.out, Format::tensors}});
  const Device device = parse_device(arguments.device);
  const bool on_device = device.kind == DeviceKind::cuda;
  ConvInput input = read_input(arguments.in);
  Precision precision{.dtype = input.features.dtype()};
  if (!arguments.precision.empty()) precision = parse_precision(arguments.precision, device);
  convert(input, precision.dtype);
  check_targets(arguments, input.target_coords.defined());
  const KernelWindow window = window_of(arguments, input.dimension);
  PUMICE_EXPECTS(input.weight.extent(0) == window.volume(), printable_path(arguments.in),
                 ": weight has ", counted(input.weight.extent(0), "offset"), " and the kernel has ",
                 window.volume(), "; give --kernel the extents the weight was made for");
  const Stream stream(device);
  const ConvResult result = compute(arguments, input, window, precision.tf32, stream);
  write_result(arguments.out, result);

  const auto pairs = on_device ? nlohmann::ordered_json() : nlohmann::ordered_json(result.pairs);
  if (arguments.json) {
    print_json(nlohmann::ordered_json{{"rows_in", input.coords.rows()},
                                      {"rows_out", result.features.rows()},
                                      {"pairs", pairs},
                                      {"channels_in", input.features.extent(1)},
                                      {"channels_out", result.features.extent(1)},
                                      {"groups", input.groups},
                                      {"device", to_string(device)},
                                      {"plan", result.plan->name()},
                                      {"map_ms", result.map_ms},
                                      {"forward_ms", result.forward_ms},
                                      {"out", arguments.out}});
    return;
  }
  fmt::print("{} -> {} {}, {} -> {}\nmap {:.2f} ms, forward {:.2f} ms ({}: {})\nwritten to {}\n",
             counted(input.coords.rows(), "row"), counted(result.features.rows(), "row"),
             on_device ? "on " + to_string(device) : "over " + counted(result.pairs, "pair"),
             input.features.extent(1), counted(result.features.extent(1), "channel"), result.map_ms,
             result.forward_ms, result.plan->name(), result.plan->reason,
             printable_path(arguments.out));
}

}   // namespace

void add_conv_command(CLI::App& app) {
  const auto arguments = std::make_shared<ConvArguments>();
  CLI::App* command =
      app.add_subcommand("conv", "Run one convolution on the tensors of a safetensors file");
  command
      ->add_option(
          "IN", arguments->in,
          "coords [N, 1 + axes], features [N, C_in], weight [K, C_in / groups, C_out]; optional "
          "bias, target_coords, grad_output")
      ->required();
  command->add_option("OUT", arguments->out, "coords and features of the result, and gradients")
      ->required();
  const auto add_axes = [command](const std::string& name, std::vector<std::int32_t>& values,
                                  const char* what) {
    take_numbers(command->add_option(name, values, what), name + " 3 3 1")
        ->expected(1, kMaxDimension);
  };
  add_axes("--kernel", arguments->kernel,
           "Extent of the kernel: one number, or one for each axis; default 3");
  add_axes("--stride", arguments->stride, "Default 1");
  add_axes("--padding", arguments->padding, "Default 0; submanifold: what centres the kernel");
  add_axes("--dilation", arguments->dilation, "Default 1");
  command->add_option("--mode", arguments->mode)
      ->check(CLI::IsMember({"submanifold", "strided", "transposed", "inverse", "generative"}))
      ->capture_default_str();
  const CLI::Option* outputs =
      command
          ->add_option(
              "--outputs", arguments->outputs,
              "Sites of a strided result: every cell an offset reaches, or occupied coarse cells")
          ->check(CLI::IsMember({"dilating", "cell"}))
          ->capture_default_str();
  add_axes("--spatial-shape", arguments->spatial_shape,
           "Extent of the input grid; results outside theirs are cut");
  command->add_option("--kernel-shape", arguments->kernel_shape)
      ->check(CLI::IsMember({"hypercube", "hypercross"}))
      ->capture_default_str();
  command->add_option(
      "--dataflow", arguments->dataflow,
      "gather_gemm_scatter, fetch_on_demand or implicit_gemm; default: the plan decides");
  command->add_option("--device", arguments->device, "cpu, cuda or cuda:1")->capture_default_str();
  add_precision(
      *command, arguments->precision,
      "Converts features, weight and grad_output; tf32 stores f32 and multiplies tf32, on "
      "a CUDA device; default: as they are in the file",
      true);
  command->add_flag("--deterministic", arguments->deterministic,
                    "On a CUDA device: bitwise the same result every time, as always on the CPU");
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, outputs] {
    arguments->outputs_given = outputs->count() > 0;
    convolve(*arguments);
  });
}

}   // namespace pumice::cli
