// Every definition written out as its formula.
#include "reference/dense_convolution.hpp"

#include <cmath>
#include <cstddef>
#include <map>

namespace pumice::reference {
namespace {

int floor_divide(int a, int b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

std::map<Site, std::int64_t> rows_of(const Sites& sites) {
  std::map<Site, std::int64_t> rows;
  for (std::size_t row = 0; row < sites.size(); ++row) {
    rows[sites[row]] = static_cast<std::int64_t>(row);
  }
  return rows;
}

/// The `in` of the relation for an `out`.
Site in_of(const Site& out, const std::vector<int>& offset, const Geometry& g) {
  Site in = out;
  for (std::size_t axis = 0; axis < offset.size(); ++axis) {
    in[1 + axis] =
        out[1 + axis] * g.stride[axis] - g.padding[axis] + offset[axis] * g.dilation[axis];
  }
  return in;
}

bool inside(const Site& site, const std::optional<std::vector<int>>& shape) {
  if (!shape) return true;
  for (std::size_t axis = 0; axis < shape->size(); ++axis) {
    if (site[1 + axis] < 0 || site[1 + axis] >= (*shape)[axis]) return false;
  }
  return true;
}

/// Calls body(in channel, out channel, index into the weight) for all channels that meet.
template <class Body> void for_channels(const Problem& p, std::int64_t offset, Body&& body) {
  const std::int64_t in_per_group = p.in_channels / p.groups;
  const std::int64_t out_per_group = p.out_channels / p.groups;
  for (std::int64_t out = 0; out < p.out_channels; ++out) {
    const std::int64_t group = out / out_per_group;
    for (std::int64_t i = 0; i < in_per_group; ++i) {
      body(group * in_per_group + i, out, (offset * in_per_group + i) * p.out_channels + out);
    }
  }
}

double at(const std::vector<double>& values, std::int64_t index) {
  return values.at(static_cast<std::size_t>(index));
}

}   // namespace

std::vector<std::vector<int>> Geometry::offsets() const {
  std::vector<std::vector<int>> all{{}};
  for (const int extent : size) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& prefix : all) {
      for (int i = 0; i < extent; ++i) {
        longer.push_back(prefix);
        longer.back().push_back(i);
      }
    }
    all = longer;
  }
  return all;
}

std::set<Site> dilating_outputs(const Sites& in, const Geometry& g,
                                const std::optional<std::vector<int>>& shape) {
  std::set<Site> outputs;
  for (const Site& site : in) {
    for (const std::vector<int>& offset : g.offsets()) {
      Site out = site;
      bool reached = true;
      for (std::size_t axis = 0; axis < offset.size(); ++axis) {
        const int scaled = site[1 + axis] + g.padding[axis] - offset[axis] * g.dilation[axis];
        reached = reached && scaled % g.stride[axis] == 0;
        out[1 + axis] = floor_divide(scaled, g.stride[axis]);
      }
      if (reached && inside(out, shape)) outputs.insert(out);
    }
  }
  return outputs;
}

std::set<Site> cell_outputs(const Sites& in, const Geometry& g,
                            const std::optional<std::vector<int>>& shape) {
  std::set<Site> outputs;
  for (Site site : in) {
    for (std::size_t axis = 0; axis < g.stride.size(); ++axis) {
      site[1 + axis] = floor_divide(site[1 + axis], g.stride[axis]);
    }
    if (inside(site, shape)) outputs.insert(site);
  }
  return outputs;
}

std::set<Site> generated_outputs(const Sites& coarse, const Geometry& g,
                                 const std::optional<std::vector<int>>& shape) {
  std::set<Site> outputs;
  for (const Site& site : coarse) {
    for (const std::vector<int>& offset : g.offsets()) {
      const Site fine = in_of(site, offset, g);
      if (inside(fine, shape)) outputs.insert(fine);
    }
  }
  return outputs;
}

Meetings meetings(const Sites& in, const Sites& out, const Geometry& g) {
  const std::map<Site, std::int64_t> row_of_in = rows_of(in);
  const std::vector<std::vector<int>> offsets = g.offsets();
  Meetings result;
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    for (std::size_t row = 0; row < out.size(); ++row) {
      const auto found = row_of_in.find(in_of(out[row], offsets[k], g));
      if (found == row_of_in.end()) continue;
      result.push_back(
          {static_cast<std::int64_t>(k), found->second, static_cast<std::int64_t>(row)});
    }
  }
  return result;
}

Meetings transposed_meetings(const Sites& coarse, const Sites& fine, const Geometry& g) {
  return inverse(meetings(fine, coarse, g));
}

Meetings inverse(const Meetings& meetings) {
  Meetings result;
  for (const Meeting& m : meetings)
    result.push_back({m.offset, m.out, m.in});
  return result;
}

void Sum::add(std::int64_t index, double term) {
  const auto i = static_cast<std::size_t>(index);
  value.at(i) += term;
  magnitude.at(i) += std::abs(term);
  terms.at(i) += 1;
}

Sum forward(const Problem& p, const std::vector<double>& features,
            const std::vector<double>& weight) {
  Sum result(p.out_rows * p.out_channels);
  for (const Meeting& m : p.meetings) {
    for_channels(p, m.offset, [&](std::int64_t in, std::int64_t out, std::int64_t w) {
      result.add(m.out * p.out_channels + out,
                 at(features, m.in * p.in_channels + in) * at(weight, w));
    });
  }
  return result;
}

Sum input_gradient(const Problem& p, const std::vector<double>& grad_output,
                   const std::vector<double>& weight) {
  Sum result(p.in_rows * p.in_channels);
  for (const Meeting& m : p.meetings) {
    for_channels(p, m.offset, [&](std::int64_t in, std::int64_t out, std::int64_t w) {
      result.add(m.in * p.in_channels + in,
                 at(grad_output, m.out * p.out_channels + out) * at(weight, w));
    });
  }
  return result;
}

Sum weight_gradient(const Problem& p, const std::vector<double>& features,
                    const std::vector<double>& grad_output) {
  Sum result(p.offsets * (p.in_channels / p.groups) * p.out_channels);
  for (const Meeting& m : p.meetings) {
    for_channels(p, m.offset, [&](std::int64_t in, std::int64_t out, std::int64_t w) {
      result.add(w, at(features, m.in * p.in_channels + in) *
                        at(grad_output, m.out * p.out_channels + out));
    });
  }
  return result;
}

Sum bias_gradient(const Problem& p, const std::vector<double>& grad_output) {
  Sum result(p.out_channels);
  for (std::int64_t row = 0; row < p.out_rows; ++row) {
    for (std::int64_t c = 0; c < p.out_channels; ++c) {
      result.add(c, at(grad_output, row * p.out_channels + c));
    }
  }
  return result;
}

}   // namespace pumice::reference
