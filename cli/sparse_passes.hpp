// A product of a sparse matrix from a file, as the tuner runs it.
#pragma once

#include <cstdint>
#include <string>

#include <pumice/core/stream.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/ops/tune_network.hpp>

#include "edges_input.hpp"

namespace CLI {
class App;
}

namespace pumice::cli {

struct SparsePassArguments {
  std::string matrix;
  std::string op = "spmm";
  std::string reduce = "sum";
  std::int64_t channels = 128;
  std::int64_t heads = 1;
  bool unweighted = false;
  bool training = false;   // gradients too
  std::string device = "cpu";
  std::string precision = "f32";
  bool json = false;
};

/// MATRIX and the options of a product. `arguments` outlives `command`.
void add_sparse_pass(CLI::App& command, SparsePassArguments& arguments);

class SparsePasses {
 public:
  /// Reads the matrix and makes features. UserError for what cannot be multiplied.
  explicit SparsePasses(const SparsePassArguments& arguments);

  /// Valid as long as this.
  NetworkPasses passes();
  /// "ca.mtx, spmm f32, 128 channels, cpu"
  std::string title() const;

 private:
  void run();

  const SparsePassArguments& arguments_;
  Stream stream_;
  EdgesInput edges_;
  Csr pattern_, backwards_;
  Tensor left_, right_, values_, attention_;
};

/// Throws what CLI11 does for the first positional that is missing: commands whose subcommands take
/// others cannot require them.
void expect_positionals(CLI::App& command);

}   // namespace pumice::cli
