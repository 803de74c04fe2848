// Checks of the arguments of a run, made before any work.
#include "run_arguments.hpp"

#include <fmt/format.h>
#include <CLI/App.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/safetensors.hpp>

#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

std::string network_names() {
  std::string names;
  for (const nn::NetworkInfo& info : nn::networks()) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : "; ", info.name, info.description);
  }
  return names;
}

}   // namespace

NetworkOptions add_network_options(CLI::App& command, RunArguments& arguments) {
  command.add_option("NETWORK", arguments.network, network_names())->required();
  arguments.reading.add_to(command);
  arguments.voxels.add_to(command);
  command.add_option(
      "--weights", arguments.weights,
      "safetensors file of any floating type, whose metadata may have widths, voxel size and "
      "classes, "
      "or streets, which is included; without it weights are random, chosen by --seed");
  command.add_option("--seed", arguments.seed, "Chooses the random weights")
      ->check(whole_number)
      ->capture_default_str();
  NetworkOptions options;
  options.widths =
      command
          .add_option("--widths", arguments.widths,
                      "Channels of minkunet42: spvnas, driving, or nine numbers with commas")
          ->capture_default_str();
  options.factor = command.add_option("--width-factor", arguments.width_factor, "Multiplies them")
                       ->capture_default_str();
  add_precision(command, arguments.precision,
                "f16 and bf16 store, sums are f32; tf32 stores f32 and multiplies tf32, on a CUDA "
                "device",
                true);
  command.add_option("--device", arguments.device, "cpu, cuda or cuda:1")->capture_default_str();
  command.add_flag("--deterministic", arguments.deterministic,
                   "On a CUDA device: bitwise the same result every time from fetch_on_demand too; "
                   "all else is reproducible anyway");
  return options;
}

void NetworkOptions::finish(RunArguments& arguments) const {
  arguments.weights = nn::find_weights(arguments.weights);
  arguments.widths_given = widths->count() > 0;
  arguments.width_factor_given = factor->count() > 0;
}

std::string RunArguments::where() const {
  const Device chosen = parse_device(device);
  if (chosen.kind == DeviceKind::cuda) return "on " + to_string(chosen);
  return "with " + counted(threads(), "thread");
}

void check_options(const RunArguments& arguments) {
  arguments.size.check(arguments.results.picture);
  PUMICE_EXPECTS(arguments.repeat >= 1, "--repeat = ", arguments.repeat, ": ask for at least 1");
  PUMICE_EXPECTS(!arguments.trained() || arguments.seed == 0, "--seed = ", arguments.seed,
                 ": it chooses random weights, and --weights gives trained ones; leave one out");
}

nn::ModelCard read_card(const RunArguments& arguments) {
  if (!arguments.trained()) {
    PUMICE_EXPECTS(arguments.labels.empty(),
                   "--labels are what the classes of trained weights are compared with, and there "
                   "are none; add --weights or leave it out");
    return {};
  }
  const SafetensorsFile file = SafetensorsFile::open(arguments.weights);
  nn::ModelCard card = nn::read_model_card(file);
  const std::string weights = "--weights " + file.name();
  PUMICE_EXPECTS(!card.relational, weights,
                 " are of a network for graphs; run them with `pumice rgcn`");
  const nn::NetworkInfo& info = nn::find_network(arguments.network);
  PUMICE_EXPECTS(card.network.empty() || card.network == info.name, weights, " are for ",
                 printable(card.network), ", not for ", info.name,
                 "; give these weights to that network");
  PUMICE_EXPECTS(card.in_channels.value_or(info.in_channels) == info.in_channels, weights, " take ",
                 *card.in_channels, " features of a point, and scans give ", info.in_channels,
                 " (x, y, z, intensity); run them from Python");
  if (card.widths) {
    PUMICE_EXPECTS(!arguments.width_factor_given, "--width-factor ", arguments.width_factor, ": ",
                   weights, " say their widths; leave it out");
    PUMICE_EXPECTS(!arguments.widths_given || nn::parse_widths(arguments.widths) == *card.widths,
                   "--widths ", arguments.widths, ": ", weights, " say others; leave it out");
  } else if (const auto widths = nn::widths_in(file); widths && info.takes_widths) {
    const auto asked =
        nn::scaled_widths(nn::parse_widths(arguments.widths), arguments.width_factor);
    PUMICE_EXPECTS(*widths == asked, weights,
                   " do not say their widths, and they are not those of the network; the shapes "
                   "fit ",
                   nn::options_for(*widths), ", so run with that");
  }
  PUMICE_EXPECTS(arguments.labels.empty() || !card.labels.empty(), "--labels: ", weights,
                 " do not say which labels their classes stand for; give their "
                 "metadata an entry \"labels\", or leave it out");
  return card;
}

nn::NetworkInfo network_info(const RunArguments& arguments, const nn::ModelCard& card) {
  nn::NetworkInfo info = nn::find_network(arguments.network);
  PUMICE_EXPECTS(info.takes_widths || !(arguments.widths_given || arguments.width_factor_given),
                 "--widths and --width-factor change minkunet42; ", arguments.network,
                 " has one set of widths, so leave them out");
  // Networks on a grid of their own are encoders, whose rows are not the voxels.
  PUMICE_EXPECTS(
      arguments.results.classes.empty() || !info.spatial_shape, "--classes ",
      printable_path(arguments.results.classes), ": ", arguments.network,
      " gives features on coarser sites and no classes; run minkunet42, or leave it out");
  if (!card.voxel_size || *card.voxel_size == info.voxel_size) return info;
  info.voxel_size = *card.voxel_size;
  info.spatial_shape.reset();   // counted in voxels of the other size
  return info;
}

}   // namespace pumice::cli
