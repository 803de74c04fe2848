// A folder of scans, one after the other: a line each, and what they have in common at the end.
#include "run_folder.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "core/printable.hpp"
#include "interrupted.hpp"
#include "outputs.hpp"
#include "run_network.hpp"
#include "run_report.hpp"
#include "run_results.hpp"
#include "scan_folder.hpp"
#include "statistics.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

namespace fs = std::filesystem;

/// What the scans that ran add up to.
struct Totals {
  std::int64_t scans = 0;
  std::int64_t failed = 0;
  std::int64_t points = 0;
  std::int64_t dropped_points = 0;
  std::int64_t voxels = 0;
  std::vector<double> network_ms;   // of each scan, the median of its repeats
  Agreement agreement;
};

class FolderRun {
 public:
  explicit FolderRun(const RunArguments& arguments)
      : arguments_(arguments), folder_(arguments.scans[0]), found_(list_scans(folder_)) {
    PUMICE_EXPECTS(!found_.scans.empty(), printable_path(folder_), ": holds no ", kScanFiles,
                   " file; sub-folders are not gone into, so name the one that has the scans");
    check_labels();
    check_results();
    card_ = read_card(arguments);
    info_ = network_info(arguments, card_);
    network_.emplace(arguments, card_, info_);
  }

  void run() {
    make_folders();
    const auto count = static_cast<int>(found_.scans.size());
    ProgressBar bar(arguments_.network);
    SaysAtInterrupt stopped("stopped before the first scan was done");
    for (int i = 0; i < count; ++i) {
      const std::string& scan = found_.scans[static_cast<std::size_t>(i)];
      bar.show(i, count);
      try {
        const Done done = run_scan(scan, [&](int layers, int all) {
          bar.show(i, count, static_cast<double>(layers) / std::max(all, 1));
        });
        bar.clear();
        report(scan, done);
      } catch (const UserError& error) {
        ++totals_.failed;
        bar.clear();
        fmt::print(stderr, "pumice: {}\n", printable_message(error.what()));
        if (arguments_.json) print_json({{"scan", path_of(scan)}, {"error", error.what()}});
      }
      std::fflush(stdout);   // a line a scan, also into a file
      stopped.say(fmt::format("stopped after {} of {}; their results are whole", i + 1,
                              counted(count, "scan")));
    }
    summarise();
    PUMICE_EXPECTS(totals_.failed == 0, printable_path(folder_), ": ", totals_.failed, " of ",
                   counted(count, "scan"),
                   " failed, and above is why; the results of the others are whole");
  }

 private:
  /// Of one scan, after everything large of it is gone.
  struct Done {
    std::int64_t points = 0;
    std::int64_t dropped_points = 0;
    std::int64_t voxels = 0;
    std::int64_t rows_out = 0;
    double voxelize_ms = 0;
    std::vector<double> network_ms{};
    std::optional<Agreement> agreement{};
    RunResults results{};
  };

  std::string path_of(const std::string& scan) const { return (folder_ / scan).string(); }

  std::string label_file(const std::string& scan) const {
    return (fs::path(arguments_.labels[0]) / (result_stem(scan) + ".label")).string();
  }

  void check_labels() const {
    if (arguments_.labels.empty()) return;
    const std::string& labels = arguments_.labels[0];
    PUMICE_EXPECTS(arguments_.labels.size() == 1 && fs::is_directory(labels), "--labels ",
                   printable_path(labels),
                   ": for a folder of scans give one folder, whose .label files are named as the "
                   "scans are");
    const bool any = std::ranges::any_of(
        found_.scans, [&](const std::string& scan) { return fs::exists(label_file(scan)); });
    PUMICE_EXPECTS(any, "--labels ", printable_path(labels), ": has no file for any scan of ",
                   printable_path(folder_), "; that of ", printable(found_.scans.front()),
                   " would be ", printable(result_stem(found_.scans.front()) + ".label"));
  }

  void check_results() const {
    const RunResults& where = arguments_.results;
    std::vector<fs::path> inputs{folder_};
    if (!arguments_.labels.empty()) inputs.emplace_back(arguments_.labels[0]);
    bool any = false;
    for (const Output& output : {Output{"--out", where.out, Format::tensors},
                                 Output{"--classes", where.classes, Format::labels},
                                 Output{"--picture", where.picture, Format::picture},
                                 Output{"--html", where.html, Format::page}}) {
      check_output_folder(inputs, output);
      any = any || !output.path.empty();
    }
    if (!any) return;
    check_result_stems(folder_, found_.scans);
    if (!arguments_.trained()) return;
    for (const std::string& scan : found_.scans) {
      PUMICE_EXPECTS(!is_weights(results_of(scan).out), "--out ", printable_path(where.out),
                     ": the result of ", printable(scan), " would replace --weights ",
                     printable_path(arguments_.weights), "; give another folder");
    }
  }

  bool is_weights(const std::string& path) const {
    std::error_code absent;
    return fs::equivalent(path, arguments_.weights, absent);
  }

  void make_folders() const {
    const RunResults& where = arguments_.results;
    for (const std::string& path : {where.out, where.classes, where.picture, where.html}) {
      std::error_code failure;
      if (!path.empty()) fs::create_directory(path, failure);
      PUMICE_EXPECTS(!failure, printable_path(path),
                     ": the folder cannot be made: ", failure.message());
    }
  }

  RunResults results_of(const std::string& scan) const {
    const auto in = [&](const std::string& folder, Format format) {
      if (folder.empty()) return std::string();
      const std::string name = result_stem(scan).append(ending_of(format));
      return (fs::path(folder) / name).string();
    };
    const RunResults& where = arguments_.results;
    return {.out = in(where.out, Format::tensors),
            .classes = in(where.classes, Format::labels),
            .picture = in(where.picture, Format::picture),
            .html = in(where.html, Format::page)};
  }

  Done run_scan(const std::string& scan, const LayerProgress& progress) {
    std::vector<std::string> labels;
    if (!arguments_.labels.empty()) labels.push_back(label_file(scan));
    const Batch batch =
        read_batch({path_of(scan)}, labels, arguments_.reading, arguments_.voxels.options(info_));
    Done done{.points = batch.points,
              .dropped_points = batch.dropped_points,
              .voxels = batch.voxels.size(),
              .voxelize_ms = batch.voxelize_ms,
              .results = results_of(scan)};
    Forward forward;
    for (int i = 0; i < arguments_.repeat; ++i) {
      forward = Forward{};   // let the previous result go before the next one is made
      forward = network_->forward(batch, !network_->on_device(), progress);
      done.network_ms.push_back(forward.total_ms);
    }
    done.rows_out = forward.features.rows();
    const Answer answer = answer_of(batch, forward, card_);
    done.agreement = answer.agreement;
    write_results(arguments_, done.results, printable(scan), batch, forward, answer, card_);
    return done;
  }

  void report(const std::string& scan, const Done& done) {
    ++totals_.scans;
    totals_.points += done.points;
    totals_.dropped_points += done.dropped_points;
    totals_.voxels += done.voxels;
    totals_.network_ms.push_back(median(done.network_ms));
    if (done.agreement) totals_.agreement.add(*done.agreement);
    if (arguments_.json) {
      print_json(as_json(scan, done));
      return;
    }
    fmt::print(
        "{}: {}{} -> {}, {:.1f} ms{}\n", printable_path(scan), counted(done.points, "point"),
        dropped_text(done.dropped_points), counted(done.voxels, "voxel"), median(done.network_ms),
        done.agreement ? fmt::format(", {:.1f} % right, mean IoU {:.3f}",
                                     100 * done.agreement->accuracy(), done.agreement->mean_iou())
                       : "");
  }

  nlohmann::ordered_json as_json(const std::string& scan, const Done& done) const {
    nlohmann::ordered_json json{
        {"scan", path_of(scan)},
        {"points", done.points},
        {"dropped_points", done.dropped_points},
        {"voxels", done.voxels},
        {"rows_out", done.rows_out},
        {"voxelize_ms", done.voxelize_ms},
        {"total_ms", done.network_ms},
        {"agreement", done.agreement ? to_json(*done.agreement) : nlohmann::ordered_json(nullptr)}};
    const auto add = [&](const char* key, const std::string& path) {
      if (!path.empty()) json[key] = path;
    };
    add("out", done.results.out);
    add("classes", done.results.classes);
    add("picture", done.results.picture);
    add("page", done.results.html);
    return json;
  }

  void summarise() const {
    const bool agreed = totals_.agreement.points > 0;
    if (arguments_.json) {
      print_json(
          {{"network", arguments_.network},
           {"folder", folder_.string()},
           {"scans", totals_.scans},
           {"failed", totals_.failed},
           {"left_out", found_.left_out},
           {"points", totals_.points},
           {"dropped_points", totals_.dropped_points},
           {"voxels", totals_.voxels},
           {"device", to_string(parse_device(arguments_.device))},
           {"threads", threads()},
           {"precision", arguments_.precision},
           {"trained", arguments_.trained()},
           {"peak_mib", peak_mebibytes()},
           {"agreement", agreed ? to_json(totals_.agreement) : nlohmann::ordered_json(nullptr)}});
      return;
    }
    if (!found_.left_out.empty())
      fmt::print("left out, being no scans: {}\n", left_out_text(found_.left_out));
    if (totals_.scans == 0) return;
    fmt::print("\n{}: {}{} -> {}; network {} in {}, median {:.1f} ms a scan\n",
               counted(totals_.scans, "scan"), counted(totals_.points, "point"),
               dropped_text(totals_.dropped_points), counted(totals_.voxels, "voxel"),
               arguments_.where(), arguments_.precision, median(totals_.network_ms));
    fmt::print("peak resident memory {:.0f} MiB\n", peak_mebibytes());
    if (!arguments_.trained()) fmt::print("weights: untrained, seed {}\n", arguments_.seed);
    if (agreed)
      fmt::print("\nagreement with the labels of the scans:\n\n{}\n",
                 agreement_table(totals_.agreement));
    const RunResults& where = arguments_.results;
    if (!where.out.empty()) fmt::print("results written to {}\n", printable_path(where.out));
    if (!where.classes.empty()) fmt::print("labels written to {}\n", printable_path(where.classes));
    if (!where.picture.empty())
      fmt::print("pictures written to {}\n", printable_path(where.picture));
    if (!where.html.empty()) fmt::print("pages written to {}\n", printable_path(where.html));
  }

  const RunArguments& arguments_;
  fs::path folder_;
  FolderScans found_;
  nn::ModelCard card_;
  nn::NetworkInfo info_{};
  std::optional<NetworkRun> network_;
  Totals totals_;
};

}   // namespace

bool names_a_folder(const RunArguments& arguments) {
  const auto is_folder = [](const std::string& path) {
    std::error_code absent;
    return fs::is_directory(path, absent);
  };
  if (arguments.scans.size() == 1 && is_folder(arguments.scans[0])) return true;
  for (const std::string& scan : arguments.scans) {
    PUMICE_EXPECTS(!is_folder(scan), printable_path(scan),
                   " is a folder among the scans of a batch; give a folder alone, and each of its "
                   "scans is run on its own");
  }
  for (const std::string& labels : arguments.labels) {
    PUMICE_EXPECTS(!is_folder(labels), "--labels ", printable_path(labels),
                   " is a folder, and the scans are files; give a .label file for each");
  }
  return false;
}

void run_folder(const RunArguments& arguments) {
  FolderRun(arguments).run();
}

}   // namespace pumice::cli
