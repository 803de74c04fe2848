// Convolution too simple to be wrong: sites in a std::map, plain loops, float64. It shares no code
// with the library, not even its types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace pumice::reference {

/// A site: batch item, then one coordinate per axis.
using Site = std::vector<int>;
using Sites = std::vector<Site>;

/// in = out · stride − padding + offset · dilation, on every axis.
struct Geometry {
  std::vector<int> size;   // extent of the kernel per axis
  std::vector<int> stride;
  std::vector<int> padding;
  std::vector<int> dilation;

  /// All cells of the kernel in lexicographic order, last axis fastest.
  std::vector<std::vector<int>> offsets() const;
};

/// Output sites that any offset of any input reaches, inside [0, shape) where there is a shape.
std::set<Site> dilating_outputs(const Sites& in, const Geometry& geometry,
                                const std::optional<std::vector<int>>& shape);
/// One output for each occupied cell of `stride`, inside [0, shape) where there is a shape.
std::set<Site> cell_outputs(const Sites& in, const Geometry& geometry,
                            const std::optional<std::vector<int>>& shape);
/// All sites out · stride − padding + offset · dilation, inside [0, shape) where there is a shape.
std::set<Site> generated_outputs(const Sites& coarse, const Geometry& geometry,
                                 const std::optional<std::vector<int>>& shape);

/// Input row `in` meets output row `out` through offset `offset`.
struct Meeting {
  std::int64_t offset;
  std::int64_t in;
  std::int64_t out;
};
using Meetings = std::vector<Meeting>;

/// A convolution: outputs look for inputs.
Meetings meetings(const Sites& in, const Sites& out, const Geometry& geometry);
/// A transposed convolution: the relation holds with `coarse` as `out` and `fine` as `in`.
Meetings transposed_meetings(const Sites& coarse, const Sites& fine, const Geometry& geometry);
/// The same pairs, each seen from the other side.
Meetings inverse(const Meetings& meetings);

/// What is convolved. Channel c of the output belongs to group c / (out_channels / groups) and sees
/// that group's input channels alone.
struct Problem {
  Meetings meetings;
  std::int64_t in_rows = 0;
  std::int64_t out_rows = 0;
  std::int64_t offsets = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
};

/// A result, and for each of its elements what a bound on rounding needs.
struct Sum {
  explicit Sum(std::int64_t elements)
      : value(static_cast<std::size_t>(elements)),
        magnitude(static_cast<std::size_t>(elements)),
        terms(static_cast<std::size_t>(elements)) {}
  void add(std::int64_t at, double term);

  std::vector<double> value;
  std::vector<double> magnitude;     // Σ |term|
  std::vector<std::int64_t> terms;   // how many
};

/// features: [in_rows, in_channels]; weight: [offsets, in_channels / groups, out_channels].
Sum forward(const Problem& problem, const std::vector<double>& features,
            const std::vector<double>& weight);
Sum input_gradient(const Problem& problem, const std::vector<double>& grad_output,
                   const std::vector<double>& weight);
Sum weight_gradient(const Problem& problem, const std::vector<double>& features,
                    const std::vector<double>& grad_output);
Sum bias_gradient(const Problem& problem, const std::vector<double>& grad_output);

}   // namespace pumice::reference
