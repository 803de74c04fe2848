// What the commands for sparse matrices share: a matrix from a file, and tensors beside it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <pumice/core/safetensors.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/graphs/matrix_market.hpp>

namespace CLI {
class App;
}

namespace pumice::cli {

struct SparseArguments {
  std::string matrix;
  std::string in;
  std::string out;
  std::string device = "cpu";
  std::string precision;   // empty: as in the file
  bool json = false;
};

/// MATRIX, IN and OUT, and the options of all such commands. `arguments` outlives `command`.
void add_sparse_options(CLI::App& command, SparseArguments& arguments, const char* in,
                        const char* out);

/// UserError for places that cannot take a result, before anything is read.
void check_sparse(const SparseArguments& arguments);

/// Tensors of IN, converted to the precision that was asked for.
class SparseInput {
 public:
  /// UserError for a tensor that is none of `names`.
  SparseInput(const SparseArguments& arguments, std::initializer_list<std::string_view> names);

  /// UserError where it is missing, or has not `rows` rows of `whose`.
  Tensor rows(const char* name, std::int64_t rows, const char* whose) const;
  bool has(const char* name) const { return file_.contains(name); }

 private:
  const SparseArguments& arguments_;
  SafetensorsFile file_;
};

}   // namespace pumice::cli
