// Edges of a call are copied, and those in use that lead nowhere are named with the number of
// nodes. Covers graphs/edges_in_use.cpp and graphs/cuda/edges_in_use.cpp.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/graphs/edges_in_use.hpp>

#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

constexpr CountsOfEdges kAt{.edges = 2, .sources = 0, .targets = 1};
const std::vector<std::int64_t> kSizes{0, 1, 31, 33, 1000};

Tensor list(const std::vector<std::int64_t>& values) {
  return Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())});
}

/// Edges in use among 5 sources and 7 targets, then such that lead past them.
Tensor edges(std::int64_t room, std::int64_t used) {
  std::vector<std::int64_t> ends;
  for (const std::int64_t nodes : {5, 7})
    for (std::int64_t edge = 0; edge < room; ++edge)
      ends.push_back(edge < used ? edge * 3 % nodes : nodes + edge);
  return Tensor::from<std::int64_t>(ends, {2, room});
}

Tensor on(StreamView stream, const Tensor& tensor) {
  return stream.device.kind == DeviceKind::cpu ? tensor : copy_to(stream, tensor);
}

std::vector<std::int64_t> values_of(const Tensor& tensor) {
  const Tensor here =
      tensor.device().kind == DeviceKind::cpu ? tensor : copy_to_host(tensor, tensor.stream());
  const auto span = here.span<std::int64_t>();
  return {span.begin(), span.end()};
}

void expect_copies(StreamView stream) {
  for (const std::int64_t room : kSizes) {
    for (const std::int64_t used : {std::int64_t{0}, room / 2, room}) {
      const Tensor given = edges(room, used);
      const Tensor made =
          edges_in_use(on(stream, given), on(stream, list({5, 7, used})), kAt, "Graph");
      EXPECT_EQ(made.shape(), given.shape());
      EXPECT_EQ(values_of(made), values_of(given)) << used << " of " << room;
    }
  }
}

/// What is said of 33 edges, of which 20 are in use, one with a wrong end; and the copy of that
/// end.
std::string said(StreamView stream, std::int64_t row, std::int64_t edge, std::int64_t number) {
  Tensor given = edges(33, 20);
  given.span<std::int64_t>()[static_cast<std::size_t>(row * 33 + edge)] = number;
  return message_of([&] {
    const Tensor made = edges_in_use(on(stream, given), on(stream, list({5, 7, 20})), kAt, "Graph");
    wait(stream);
    EXPECT_EQ(values_of(made), values_of(given));
  });
}

void expect_mistakes_named(StreamView stream) {
  EXPECT_EQ(said(stream, 0, 19, 5),
            "Graph: edge_index[0][19] = 5 where there are 5: give numbers from 0 on");
  EXPECT_EQ(said(stream, 1, 0, -1),
            "Graph: edge_index[1][0] = -1 where there are 7: give numbers from 0 on");
  EXPECT_EQ(said(stream, 1, 7, std::int64_t{1} << 40),
            "Graph: edge_index[1][7] = 1099511627776 where there are 7: give numbers from 0 on");
  EXPECT_EQ(said(stream, 0, 20, 12), "(nothing was thrown)") << "which is not in use";
}

TEST(EdgesInUse, are_copied) {
  expect_copies({});
}

TEST(EdgesInUse, that_lead_nowhere_are_named) {
  expect_mistakes_named({});
}

TEST(EdgesInUse, of_other_types_and_shapes_are_refused) {
  const Tensor given = edges(3, 2), counts = list({5, 7, 2});
  const auto said_of = [](const Tensor& ends, const Tensor& numbers, CountsOfEdges at) {
    return message_of([&] { edges_in_use(ends, numbers, at, "Graph"); });
  };
  EXPECT_NE(said_of(counts, counts, kAt).find("give i64 [2, room]"), std::string::npos);
  EXPECT_NE(said_of(given, given, kAt).find("give i64 [counts]"), std::string::npos);
  EXPECT_NE(said_of(given, counts, {.edges = 3}).find("count 3 of 3"), std::string::npos);
}

TEST(EdgesInUseGpu, are_copied) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  expect_copies(stream);
}

TEST(EdgesInUseGpu, that_lead_nowhere_are_named) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  expect_mistakes_named(stream);
}

TEST(EdgesInUseGpu, that_lead_nowhere_lead_to_the_first_node) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  Tensor given = edges(33, 20);
  given.span<std::int64_t>()[4] = 9;
  std::vector<std::int64_t> made(66), expected = values_of(given);
  expected[4] = 0;
  EXPECT_NE(message_of([&] {
              const Tensor there =
                  edges_in_use(on(stream, given), on(stream, list({5, 7, 20})), kAt, "Graph");
              copy_async(made.data(), Device{}, there.raw(), stream.device(), there.bytes(),
                         stream);
              stream.wait();
            }).find("edge_index[0][4] = 9"),
            std::string::npos);
  EXPECT_EQ(made, expected);
}

}   // namespace
}   // namespace pumice::test
