// Scores of entries from additive attention (Bahdanau et al., and GATv2's): they run where the
// pattern is, and all tensors lie there; on a device they are enqueued, in f32, f16 or bf16.
// Nothing of [entries, C] is made.
#pragma once

#include <pumice/core/results.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/plan/sparse_plan.hpp>

namespace pumice {

/// The score of entry e in head h is the sum over its channels c of
///
///   attention[h, c] · leaky(target[row of e, h, c] + source[column of e, h, c] + entry[e, h, c])
///
/// where leaky(z) is z > 0 ? z : negative_slope · z, and that of minus infinity is itself. All of
/// one floating type; channels of a head lie side by side.
struct AdditiveScores {
  ConstTensorView target;      // [rows, C]
  ConstTensorView source;      // [columns, C]
  ConstTensorView attention;   // [heads, C / heads]
  ConstTensorView entry{};     // [entries, C] by the entries' numbers; undefined: zeros
  double negative_slope = 1;
};

/// [entries, heads] by the entries' numbers. Sums run in float (double for f64) and are rounded
/// once. UserError names the argument that does not fit. `plan`: as in pumice/ops/spmm.hpp.
Tensor edge_scores(const CsrView& pattern, const AdditiveScores& scores, const Place& place = {},
                   const SparsePlan* plan = nullptr);

struct AdditiveScoreGradients {
  Tensor target, source, attention;
  Tensor entry;   // undefined where there are no rows of entries
};
struct AdditiveScorePlaces {
  Place target{}, source{}, attention{}, entry{};
};

/// `backwards` is the transpose of the pattern, `grad_output` [entries, heads] the gradient of the
/// scores. At 0 leaky has the slope of what is below, and sums of minus infinity add nothing to the
/// gradient of attention, so that an entry of which grad_output is 0 adds nothing to any. The same
/// bits every time.
AdditiveScoreGradients edge_scores_gradient(const CsrView& pattern, const CsrView& backwards,
                                            const AdditiveScores& scores,
                                            ConstTensorView grad_output,
                                            const AdditiveScorePlaces& places = {});

}   // namespace pumice
