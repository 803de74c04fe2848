// Attention over the entries of each row: what graph attention networks weigh messages by. It runs
// where the pattern is, and all tensors lie there; on a device it is enqueued, in f32, f16 or bf16.
#pragma once

#include <pumice/core/results.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice {

/// The score of entry e in head h is leaky(target[row of e, h] + source[column of e, h] +
/// entry[e, h]), where leaky(z) = z > 0 ? z : negative_slope · z, and that of minus infinity is
/// itself, so that such an entry has no share. Each of the three may be undefined, not all. All of
/// one floating type.
struct EdgeScores {
  ConstTensorView target{};    // [rows, heads]
  ConstTensorView source{};    // [columns, heads]
  ConstTensorView entry{};     // [entries, heads] by the entries' numbers
  double negative_slope = 1;   // from 0 on; 1: scores are the sums themselves
};

/// [entries, heads] by the entries' numbers: exp(score) over its sum over the entries of the row,
/// computed in float (double for f64) after the largest score of the row is taken away, rounded
/// once. UserError names the argument that does not fit.
Tensor edge_softmax(const CsrView& pattern, const EdgeScores& scores, const Place& place = {});

/// Those of what `scores` has; the others are undefined.
struct EdgeScoreGradients {
  Tensor target, source, entry;
};
struct EdgeScorePlaces {
  Place target{}, source{}, entry{};
};

/// `output` is what edge_softmax returned; `backwards`, the transpose, is looked at where there are
/// scores of sources. The same bits every time.
EdgeScoreGradients edge_softmax_gradient(const CsrView& pattern, const CsrView& backwards,
                                         const EdgeScores& scores, ConstTensorView output,
                                         ConstTensorView grad_output,
                                         const EdgeScorePlaces& places = {});

}   // namespace pumice
