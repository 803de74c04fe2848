// What runs in one kernel with a link's convolution.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pumice/nn/chain.hpp>
#include <pumice/ops/convolution.hpp>

#include "nn/chain/structure.hpp"

namespace pumice::nn {

/// Where shortcuts run. Training needs the statistics of what they make.
enum class Shortcuts { in_links_that_add_them, by_themselves };

/// The rule for all of it. On a device, where a plan fuses inputs (`ConvolutionPlan::fuses_inputs`:
/// implicit GEMM, rows of whole 16 bytes):
///  - two values that a convolution takes side by side are read where they lie, unless a link that
///    takes the same two cannot;
///  - in evaluation a shortcut (`ChainStructure::shortcuts`) of one offset, which takes every row
///    to itself, is one more offset of the link that adds it, unless it has a plan of its own.
/// All else runs link by link, and the two values are brought together before.
class Fusions {
 public:
  /// `weights` [K, C_in, C_out], one of each link; all that is given outlives this.
  Fusions(const Chain& chain, const ChainInput& input, std::span<const ConstTensorView> weights,
          Shortcuts shortcuts);

  /// Which link runs in link `link`.
  std::optional<std::size_t> shortcut_of(std::size_t link) const { return shortcuts_[link]; }
  bool runs_in_another(std::size_t link) const { return runs_in_another_[link] != 0; }
  /// Whether a join is read where its parts lie; of other values no.
  bool is_apart(std::size_t value) const {
    return structure_.is_join(value) && apart_[structure_.join_number(value)] != 0;
  }
  std::size_t last_use(std::size_t value) const { return last_use_[value]; }

  /// What a link's convolution reads of `values`, those of a pass or without data, and beside it.
  template <class Of> ConstTensorView features_of(std::size_t link, const Of& values) const {
    const std::size_t source = structure_.sources[link];
    return values[is_apart(source) ? structure_.join_at(source).left : source];
  }
  template <class Of> ConstTensorView second_of(std::size_t link, const Of& values) const {
    const std::size_t source = structure_.sources[link];
    return is_apart(source) ? values[structure_.join_at(source).right] : ConstTensorView{};
  }
  /// Sets what the kernel of a link reads beside `features_of`, with a shortcut or without; of a
  /// shortcut the features alone.
  template <class Of>
  void set_inputs(ConvolutionOptions& options, std::size_t link,
                  std::optional<std::size_t> shortcut, const Of& values) const {
    options.second = second_of(link, values);
    options.shortcut = {};
    if (shortcut)
      options.shortcut = {.features = features_of(*shortcut, values),
                          .second = second_of(*shortcut, values)};
  }

  /// Whether a shortcut may run in a link, for all that both are: no matter which kernels there
  /// are.
  static bool fits_together(std::span<const ConstTensorView> weights, std::size_t link,
                            std::size_t shortcut);

 private:
  void choose_shortcuts();
  bool can_run_in(std::size_t shortcut, std::size_t link) const;
  /// Whether the plan of a link fuses what it reads, with a shortcut or without.
  bool is_fused(std::size_t link, std::optional<std::size_t> shortcut) const;
  void keep_what_shortcuts_take();

  const Chain& chain_;
  const ChainStructure& structure_;
  const ChainInput& input_;
  std::span<const ConstTensorView> weights_;
  Shortcuts where_;
  std::vector<char> apart_;   // of each join
  std::vector<std::optional<std::size_t>> shortcuts_;
  std::vector<char> runs_in_another_;
  std::vector<std::size_t> last_use_;
};

}   // namespace pumice::nn
