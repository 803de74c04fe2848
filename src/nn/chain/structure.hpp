// How the values of a chain hang together: found once, when it is described.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <pumice/nn/chain.hpp>

namespace pumice::nn {

/// Values are numbered: what is given, what the links make, then the joins.
struct ChainStructure {
  /// Two values whose channels a convolution takes as those of one.
  struct Join {
    std::size_t left;
    std::size_t right;
    friend bool operator==(const Join&, const Join&) = default;
  };

  /// UserError as the constructor of Chain.
  explicit ChainStructure(const std::vector<ChainLink>& links);

  std::size_t values() const { return kChainGiven + links + joins.size(); }
  bool is_join(std::size_t value) const { return value >= kChainGiven + links; }
  /// Which of `joins` a value is.
  std::size_t join_number(std::size_t value) const { return value - kChainGiven - links; }
  const Join& join_at(std::size_t value) const { return joins[join_number(value)]; }

  std::size_t links;
  std::vector<Join> joins;              // each once
  std::vector<std::size_t> sources;     // of each link: the value, or the join, that is convolved
  std::vector<std::size_t> first_use;   // of each value: the link that takes it first, or `links`
  std::vector<std::size_t> last_use;
  /// Of each link: the one whose result is its residual and goes nowhere else, with neither a
  /// residual nor a ReLU of its own.
  std::vector<std::optional<std::size_t>> shortcuts;

 private:
  void take(std::size_t value, std::size_t link);
  std::size_t source_of(const ChainLink& link);
  void find_shortcuts(const std::vector<ChainLink>& of);

  std::vector<std::size_t> uses_;   // of each value: how many there are
};

/// Calls `work` with each value that a link takes, parts of a join too.
template <class Work>
void for_each_taken(const ChainStructure& structure, const ChainLink& link, std::size_t number,
                    const Work& work) {
  work(link.input);
  if (link.second) {
    work(*link.second);
    work(structure.sources[number]);
  }
  if (link.residual) work(*link.residual);
}

}   // namespace pumice::nn
