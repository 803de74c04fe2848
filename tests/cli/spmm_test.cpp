// `pumice spmm` and `pumice sddmm` on matrices that are worked out by hand.
// Covers spmm, sddmm and sparse_matrix.
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/safetensors.hpp>

#include "program.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

class SparseMatrixTest : public ProgramTest {
 protected:
  /// [2, 3]: 2 at (0, 0), -1 at (0, 2), 3 at (1, 1).
  void write_matrix() const {
    write_text(path("m.mtx"),
               "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 2\n1 3 -1\n2 2 3\n");
  }
  void write_tensors(const std::vector<std::pair<std::string, Tensor>>& tensors) const {
    const std::vector<NamedTensor> views(tensors.begin(), tensors.end());
    write_safetensors(path("in.safetensors"), views);
  }
  static Tensor matrix(const std::vector<double>& values, std::int64_t rows) {
    const auto columns = static_cast<std::int64_t>(values.size()) / rows;
    return Tensor::from(std::span<const double>(values), {rows, columns}).to(DType::f32);
  }
  Outcome run_on(const std::string& command, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{command, path("m.mtx"), path("in.safetensors"),
                                       path("out.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  std::vector<double> made(const char* name) const {
    const Tensor tensor = SafetensorsFile::open(path("out.safetensors")).get(name).to(DType::f64);
    const auto values = tensor.span<double>();
    return {values.begin(), values.end()};
  }
};

using Values = std::vector<double>;

TEST_F(SparseMatrixTest, MultipliesForwardAndBackward) {
  write_matrix();
  write_tensors(
      {{"features", matrix({1, 10, 2, 20, 3, 30}, 3)}, {"grad_output", matrix({1, 2, 3, 4}, 2)}});
  const Outcome outcome = run_on("spmm");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 x 3 with 3 entries, sum of 2 channels"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(made("features"), (Values{-1, -10, 6, 60}));
  EXPECT_EQ(made("grad_features"), (Values{2, 4, 9, 12, -1, -2}));
  EXPECT_EQ(made("grad_values"), (Values{21, 63, 86}));
}

TEST_F(SparseMatrixTest, ReducesInOtherWays) {
  write_matrix();
  write_tensors({{"features", matrix({1, 10, 2, 20, 3, 30}, 3)}});
  EXPECT_EQ(run_on("spmm", {"--reduce", "mean"}).code, 0);
  EXPECT_EQ(made("features"), (Values{-0.5, -5, 6, 60}));
  EXPECT_EQ(run_on("spmm", {"--reduce", "max"}).code, 0);
  EXPECT_EQ(made("features"), (Values{2, 20, 6, 60}));
  EXPECT_EQ(run_on("spmm", {"--reduce", "min", "--precision", "f64"}).code, 0);
  EXPECT_EQ(made("features"), (Values{-3, -30, 6, 60}));
  EXPECT_EQ(SafetensorsFile::open(path("out.safetensors")).get("features").dtype(), DType::f64);
}

TEST_F(SparseMatrixTest, ALineOfASymmetricMatrixGetsTheSumOfBothItsEntries) {
  write_text(path("m.mtx"),
             "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n");
  write_tensors({{"features", matrix({1, 10}, 2)}, {"grad_output", matrix({3, 5}, 2)}});
  EXPECT_EQ(run_on("spmm").code, 0);
  EXPECT_EQ(made("features"), (Values{10, 11}));
  EXPECT_EQ(made("grad_values"), (Values{5 * 1 + 3 * 10, 5 * 10}));

  write_text(path("m.mtx"), "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 2\n");
  EXPECT_EQ(run_on("spmm").code, 0);
  EXPECT_EQ(made("features"), (Values{-20, 2}));
  EXPECT_EQ(made("grad_values"), (Values{5 * 1 - 3 * 10}));
}

TEST_F(SparseMatrixTest, SamplesDotProducts) {
  write_matrix();
  write_tensors({{"left", matrix({1, 2, 3, 4}, 2)}, {"right", matrix({1, 0, 0, 1, 1, 1}, 3)}});
  EXPECT_EQ(run_on("sddmm").code, 0);
  EXPECT_EQ(made("values"), (Values{1, 3, 4}));
  EXPECT_EQ(run_on("sddmm", {"--scale", "--json"}).code, 0);
  EXPECT_EQ(made("values"), (Values{2, -3, 12}));
}

TEST_F(SparseMatrixTest, SaysWhatDoesNotFit) {
  write_matrix();
  write_tensors({{"features", matrix({1, 2}, 2)}});
  Outcome outcome = run_on("spmm");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("features is f32 [2, 1] and the matrix has 3 columns"),
            std::string::npos)
      << outcome.err;
  write_tensors({{"features", matrix({1, 2, 3}, 3)}, {"grad_output", matrix({1, 2, 3, 4}, 2)}});
  outcome = run_on("spmm");
  EXPECT_NE(outcome.err.find("grad_output is f32 [2, 2] and the result f32 [2, 1]"),
            std::string::npos)
      << outcome.err;
  write_tensors({{"feature", matrix({1, 2, 3}, 3)}});
  outcome = run_on("spmm");
  EXPECT_NE(outcome.err.find("tensor \"feature\" is none that this command takes"),
            std::string::npos)
      << outcome.err;
  outcome = run_on("spmm", {"--precision", "tf32"});   // which is for products of weights
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("choose f32, f64, f16 or bf16"), std::string::npos) << outcome.err;
}

class SparseMatrixGpu : public SparseMatrixTest {};

TEST_F(SparseMatrixGpu, GivesTheNumbersOfTheCpu) {
  PUMICE_NEEDS_GPU();
  write_matrix();
  write_tensors(
      {{"features", matrix({1, 10, 2, 20, 3, 30}, 3)}, {"grad_output", matrix({1, 2, 3, 4}, 2)}});
  for (const char* reduce : {"sum", "mean", "max", "min"}) {
    std::vector<Values> here, there;
    for (const char* device : {"cpu", "cuda"}) {
      const Outcome outcome = run_on("spmm", {"--reduce", reduce, "--device", device});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      for (const char* name : {"features", "grad_features", "grad_values"})
        (device == std::string("cpu") ? here : there).push_back(made(name));
    }
    EXPECT_EQ(here, there) << reduce;   // small whole numbers, halves of them for mean
  }
  write_tensors({{"left", matrix({1, 2, 3, 4}, 2)}, {"right", matrix({1, 0, 0, 1, 1, 1}, 3)}});
  EXPECT_EQ(run_on("sddmm", {"--device", "cuda"}).code, 0);
  EXPECT_EQ(made("values"), (Values{1, 3, 4}));
}

}   // namespace
}   // namespace pumice::test
