// Times one layer and files its record, when the context has a profile.
#pragma once

#include <string>

#include <pumice/core/stream.hpp>
#include <pumice/nn/context.hpp>
#include <pumice/nn/sparse_tensor.hpp>

namespace pumice::nn {

class LayerTimer {
 public:
  /// `name` is the layer's path; `counts`: of how many layers, for the progress bar.
  LayerTimer(Context& context, const std::string& name, const SparseTensor& in, int counts)
      : profile_(context.profile), counts_(counts) {
    if (profile_ == nullptr) return;
    record_.name = name;
    record_.in_rows = in.rows();
    record_.in_channels = in.channels();
  }

  bool on() const { return profile_ != nullptr; }
  /// kind, pairs, gflop and plan are the layer's to fill.
  LayerRecord& record() { return record_; }
  /// Ends the map's share of the time and starts the layer's.
  void map_is_ready(double map_ms) {
    record_.map_ms = map_ms;
    watch_ = {};
  }
  void finish(std::string kind, const SparseTensor& out) {
    if (profile_ == nullptr) return;
    if (out.features.device().kind == DeviceKind::cuda) wait(out.features.stream());
    record_.ms = watch_.ms();
    record_.kind = std::move(kind);
    record_.out_rows = out.rows();
    record_.out_channels = out.channels();
    profile_->add(std::move(record_), counts_);
  }

 private:
  Profile* profile_;
  int counts_;
  Stopwatch watch_{};
  LayerRecord record_{};
};

}   // namespace pumice::nn
