// Files of a run.
#include "run_results.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/safetensors.hpp>

#include "page.hpp"
#include "picture.hpp"
#include "picture_colours.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

void write_features(const std::string& path, const Forward& forward, const Batch& batch) {
  const Tensor features = forward.features.to(DType::f32);
  std::vector<std::pair<std::string, ConstTensorView>> tensors{
      {"coords", forward.coordinates},
      {"features", features},
      {"point_to_voxel", batch.voxels.point_to_voxel}};
  if (!forward.on_voxels()) tensors.emplace_back("input_coords", batch.voxels.coordinates);
  write_safetensors(path, tensors);
}

/// As SemanticKITTI's: a class is the first label it stands for, or its number where the weights
/// say nothing of labels; 0, which is unlabeled there, in no voxel.
void write_labels(const std::string& path, std::span<const std::int32_t> classes,
                  const nn::ModelCard& card) {
  std::vector<std::uint32_t> labels;
  labels.reserve(classes.size());
  for (const std::int32_t number : classes) {
    std::int32_t label = number;
    if (number < 0) {
      label = 0;
    } else if (!card.labels.empty()) {
      const std::vector<std::int32_t>& all = card.labels.at(static_cast<std::size_t>(number));
      label = all.empty() ? 0 : all.front();
    }
    labels.push_back(static_cast<std::uint32_t>(label));
  }
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(labels)));
  file.commit();
}

Image picture_of(const RunArguments& arguments, const std::string& name, const Batch& batch,
                 std::span<const std::int32_t> classes, const Answer& answer,
                 const nn::ModelCard& card) {
  const PointCloud& cloud = batch.clouds[0];
  PictureOptions options;
  arguments.size.set(options);
  options.by = classes.empty() ? ColourBy::height : ColourBy::label;
  options.styles = class_styles(card);
  options.caption =
      fmt::format("{} on {}: {}, {}", arguments.network, name, counted(cloud.size(), "point"),
                  counted(first_voxels(batch), "voxel"));
  if (batch.clouds.size() > 1)
    options.caption += fmt::format(" (first of {} scans)", batch.clouds.size());
  if (!classes.empty() && !arguments.trained()) options.caption += ", untrained weights";
  if (answer.agreement && batch.clouds.size() == 1)
    options.caption += fmt::format(", {:.1f} % right", 100 * answer.agreement->accuracy());
  return render(cloud, classes, options);
}

std::string page_of(const RunArguments& arguments, const std::string& name, const Batch& batch,
                    std::span<const std::int32_t> classes, const Answer& answer,
                    const nn::ModelCard& card) {
  PageOptions options;
  options.name = fmt::format("{} on {}", arguments.network, name);
  options.by = classes.empty() ? ColourBy::height : ColourBy::label;
  options.classes = classes;
  options.styles = class_styles(card);
  if (!arguments.trained()) {
    options.notes.push_back("The weights are untrained: " +
                            std::string(classes.empty() ? "what the network gives means nothing."
                                                        : "the classes are random."));
  }
  if (batch.clouds.size() > 1) {
    options.notes.push_back(
        fmt::format("This is the first of {} scans of one batch.", batch.clouds.size()));
  }
  if (classes.empty()) {
    options.notes.emplace_back(
        "The network gives features on coarser sites and no classes of points.");
  }
  if (!classes.empty() && !answer.truth.empty()) {
    const auto truth = std::span(answer.truth).first(classes.size());
    // Another scan of the batch may be the only one with labels.
    if (std::ranges::any_of(truth, [](std::int32_t number) { return number >= 0; }))
      options.truth = truth;
    if (answer.agreement && batch.clouds.size() == 1) {
      options.notes.push_back(fmt::format(
          "{:.1f} % of {} right, mean IoU {:.3f}.", 100 * answer.agreement->accuracy(),
          counted(answer.agreement->points, "labelled point"), answer.agreement->mean_iou()));
    }
  }
  return page(batch.clouds[0], options);
}

}   // namespace

Answer answer_of(const Batch& batch, const Forward& forward, const nn::ModelCard& card) {
  Answer answer;
  if (!forward.on_voxels()) return answer;
  answer.classes = point_classes(batch, forward.features);
  answer.truth = true_classes(card, point_labels(batch));
  answer.agreement = compare(card, answer.classes, answer.truth);
  return answer;
}

void write_results(const RunArguments& arguments, const RunResults& where, const std::string& name,
                   const Batch& batch, const Forward& forward, const Answer& answer,
                   const nn::ModelCard& card) {
  std::span<const std::int32_t> first = answer.classes;
  if (!first.empty()) first = first.first(static_cast<std::size_t>(batch.clouds[0].size()));
  const Image picture =
      where.picture.empty() ? Image{} : picture_of(arguments, name, batch, first, answer, card);
  const std::string html =
      where.html.empty() ? "" : page_of(arguments, name, batch, first, answer, card);
  if (!where.out.empty()) write_features(where.out, forward, batch);
  if (!where.classes.empty()) write_labels(where.classes, answer.classes, card);
  if (!where.picture.empty()) write_png(where.picture, picture);
  if (!where.html.empty()) write_page(where.html, html);
}

}   // namespace pumice::cli
