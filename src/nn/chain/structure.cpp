// Numbers joins, and finds out who takes which value.
#include "nn/chain/structure.hpp"

#include <algorithm>

#include <pumice/core/error.hpp>

namespace pumice::nn {

ChainStructure::ChainStructure(const std::vector<ChainLink>& of) : links(of.size()) {
  PUMICE_EXPECTS(!of.empty(), "a chain of no links: give at least one");
  for (std::size_t i = 0; i < links; ++i) {
    const auto check = [&](std::size_t value) {
      PUMICE_EXPECTS(value < kChainGiven + i, "link ", i, " takes value ", value,
                     ", which no link before it makes: there are ", kChainGiven + i);
    };
    check(of[i].input);
    if (of[i].second) check(*of[i].second);
    if (of[i].residual) check(*of[i].residual);
    sources.push_back(source_of(of[i]));
  }
  first_use.assign(values(), links);
  last_use = first_use;
  uses_.assign(values(), 0);
  for (std::size_t i = 0; i < links; ++i)
    for_each_taken(*this, of[i], i, [&](std::size_t value) { take(value, i); });
  for (std::size_t i = 0; i + 1 < links; ++i)
    PUMICE_EXPECTS(uses_[kChainGiven + i] > 0, "no link takes what link ", i,
                   " makes: leave it out");
  find_shortcuts(of);
}

std::size_t ChainStructure::source_of(const ChainLink& link) {
  if (!link.second) return link.input;
  const Join join{link.input, *link.second};
  const auto found = std::find(joins.begin(), joins.end(), join);
  const auto number = static_cast<std::size_t>(found - joins.begin());
  if (found == joins.end()) joins.push_back(join);
  return kChainGiven + links + number;
}

void ChainStructure::take(std::size_t value, std::size_t link) {
  first_use[value] = std::min(first_use[value], link);
  last_use[value] = link;
  ++uses_[value];
}

void ChainStructure::find_shortcuts(const std::vector<ChainLink>& of) {
  shortcuts.resize(links);
  for (std::size_t i = 0; i < links; ++i) {
    const std::optional<std::size_t>& residual = of[i].residual;
    if (!residual || *residual < kChainGiven || uses_[*residual] != 1) continue;
    const std::size_t made_by = *residual - kChainGiven;
    if (!of[made_by].relu && !of[made_by].residual) shortcuts[i] = made_by;
  }
}

}   // namespace pumice::nn
