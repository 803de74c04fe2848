// Operators recorded into a graph with everything cold: windows that were never copied to the
// device, maps without tiles, kernels that were never loaded. Each gives what it gives without a
// graph, at every launch and whatever became of the host's memory since; or it is refused.
// Covers every operator on a device.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream_heap.hpp>

#include "core/cuda/graph.hpp"
#include "ops/recorded_graph_cases.hpp"

namespace pumice {
namespace {

using namespace test;

/// What was freed on the host is likely to hold something else from now on.
void scribble_over_freed_memory() {
  std::vector<std::vector<unsigned char>> all;
  for (std::size_t bytes = 16; bytes <= (std::size_t{1} << 17); bytes += bytes / 4) {
    for (int i = 0; i < 8; ++i)
      all.emplace_back(bytes, static_cast<unsigned char>(0xee));
  }
}

class RecordedOperatorsGpu : public ::testing::TestWithParam<std::size_t> {
 protected:
  static constexpr DType kType = DType::f16;
  static std::int64_t rows() { return on_emulator() ? 40 : 3000; }

  /// Memory for a recording, which cannot take any from elsewhere.
  static std::shared_ptr<StreamHeap> memory_on(StreamView stream) {
    const std::size_t bytes = std::size_t{on_emulator() ? 64u : 512u} << 20;
    auto heap = std::make_shared<StreamHeap>(stream);
    heap->deallocate(heap->allocate(bytes, stream), bytes, stream);
    return heap;
  }

  static void expect_same(const Outputs& actual, const Outputs& expected, const char* when) {
    ASSERT_EQ(actual.size(), expected.size()) << when;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(same_bits(back(actual[i]), back(expected[i]))) << when << ", output " << i;
  }
};

TEST_P(RecordedOperatorsGpu, give_the_same_at_every_launch_or_are_refused) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);   // before the case, which keeps packed weights in its memory
  const RecordedCase one = recorded_cases()[GetParam()];
  SCOPED_TRACE(one.name);
  RecordedInputs in(rows(), kType, stream);
  stream.wait();
  const auto heap = memory_on(stream);
  Outputs recorded;
  std::optional<cuda::Graph> graph;
  const auto record = [&] {
    const AllocatorScope scope(kGpu, heap);
    one.run(in, recorded);
  };
  try {
    graph = cuda::Graph::capture(stream, record);
  } catch (const UserError& error) {
    EXPECT_TRUE(one.refused) << error.what();
    const std::string said = error.what();
    const auto says = [&](const char* word) { return said.find(word) != std::string::npos; };
    EXPECT_TRUE(says("graph")) << said;
    EXPECT_TRUE(says("before") || says("after") || says("choose")) << said;
    stream.wait();   // and the stream is as it was
    return;
  }
  ASSERT_FALSE(one.refused) << "it was to be refused";
  RecordedInputs alike(rows(), kType, stream);
  Outputs expected;
  one.run(alike, expected);
  for (const char* launch : {"first launch", "second launch"}) {
    for (Tensor& tensor : recorded)
      fill_bytes_async(tensor.raw(), std::byte{0x77}, tensor.bytes(), stream);
    scribble_over_freed_memory();
    graph->launch();
    expect_same(recorded, expected, launch);
  }
  // What the recording left with maps, sets and weights is not taken for something that is there.
  for (Tensor& tensor : recorded)
    fill_bytes_async(tensor.raw(), std::byte{0x77}, tensor.bytes(), stream);
  Outputs after;
  one.run(in, after);
  expect_same(after, expected, "after the recording");
  graph->launch();
  expect_same(recorded, expected, "third launch");
}

TEST_P(RecordedOperatorsGpu, leave_nothing_half_made_when_the_graph_never_runs) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const RecordedCase one = recorded_cases()[GetParam()];
  if (one.refused) return;
  SCOPED_TRACE(one.name);
  RecordedInputs in(rows(), kType, stream);
  RecordedInputs alike(rows(), kType, stream);
  stream.wait();
  const auto heap = memory_on(stream);
  Outputs never;
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    const AllocatorScope scope(kGpu, heap);
    one.run(in, never);
  });
  Outputs expected;
  one.run(alike, expected);
  Outputs eager;
  one.run(in, eager);
  expect_same(eager, expected, "beside a graph that never ran");
}

INSTANTIATE_TEST_SUITE_P(Cases, RecordedOperatorsGpu,
                         ::testing::Range<std::size_t>(0, recorded_cases().size()));

/// Functions of a header that stand at the beginning of a line.
std::set<std::string> functions_of(const std::filesystem::path& header) {
  std::set<std::string> names;
  std::ifstream file(header);
  const std::regex declaration(R"(^[A-Za-z][\w:<>]* ([a-z]\w*)\(.*)");
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (std::regex_match(line, found, declaration)) names.insert(found[1]);
  }
  return names;
}

TEST(RecordedOperators, are_all_there_are) {
  const std::filesystem::path include = std::filesystem::path(PUMICE_SOURCE_DIR) / "include/pumice";
  std::set<std::string> declared;
  std::vector<std::filesystem::path> headers{
      include / "maps/build.hpp", include / "coords/set_operations.hpp",
      include / "coords/unique.hpp", include / "coords/voxel_sites.hpp"};
  for (const auto& entry : std::filesystem::directory_iterator(include / "ops")) {
    if (entry.path().filename() != "tune_network.hpp")   // which waits for what it measures
      headers.push_back(entry.path());
  }
  for (const auto& header : headers)
    declared.merge(functions_of(header));
  for (const char* of_the_host_alone : {"grid_of", "layers_on_maps", "linear_problem"})
    declared.erase(of_the_host_alone);
  std::set<std::string> covered;
  for (const RecordedCase& one : recorded_cases())
    covered.insert(one.functions.begin(), one.functions.end());
  ASSERT_GT(declared.size(), 60u);
  for (const std::string& name : declared)
    EXPECT_TRUE(covered.contains(name))
        << name << ": tests/ops/recorded_cases.hpp has no case of it";
  for (const std::string& name : covered)
    EXPECT_TRUE(declared.contains(name)) << name << " is in no header";
}

}   // namespace
}   // namespace pumice
