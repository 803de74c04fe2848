// Patterns made, transposed and copied on a device are those of the CPU, list by list.
// Covers graphs/cuda/patterns.cpp, graphs/cuda/balance.cpp and graphs/graph.cpp.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/graphs/graph.hpp>

#include "graphs/random_pattern.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

template <class T> std::vector<T> list(std::span<const T> span) {
  return {span.begin(), span.end()};
}

/// Numbers of all entries by place, even where they are the places.
std::vector<std::int64_t> numbers(const CsrView& pattern) {
  std::vector<std::int64_t> all;
  for (std::int64_t place = 0; place < pattern.entries(); ++place)
    all.push_back(pattern.number_of(place));
  return all;
}

void expect_same(const CsrView& got, const CsrView& expected) {
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_EQ(got.columns, expected.columns);
  EXPECT_EQ(list(got.row_begin), list(expected.row_begin));
  EXPECT_EQ(list(got.column), list(expected.column));
  EXPECT_EQ(numbers(got), numbers(expected));
}

/// Made where `stream` runs, of lists of `type`.
Csr made_there(const PatternCase& one, bool wide, const Stream& stream) {
  const Tensor row = copy_to(stream, wide ? i64(one.row) : i32(one.row));
  const Tensor column = copy_to(stream, wide ? i64(one.column) : i32(one.column));
  return Csr(one.rows, one.columns, row, column);
}

std::vector<PatternCase> cases() {
  std::vector<PatternCase> all = pattern_cases();
  all.push_back(random_pattern(1, 1, 300, 4));
  if (!on_emulator()) all.push_back(random_pattern(200'000, 65'537, 3'000'000, 5));
  return all;
}

TEST(PatternsGpu, are_those_of_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const PatternCase& one : cases()) {
    SCOPED_TRACE(one.name);
    const Csr here = one.csr();
    const Csr turned_here = transposed(here.view());
    for (const bool wide : {true, false}) {
      const Csr there = made_there(one, wide, stream);
      const Csr back = copy_to_host(there.view(), stream);
      check_pattern(back.view(), "test");
      expect_same(back.view(), here.view());
      const Csr turned = transposed(there.view(), stream);
      const Csr turned_back = copy_to_host(turned.view(), stream);
      check_pattern(turned_back.view(), "test");
      expect_same(turned_back.view(), turned_here.view());
    }
    const Csr copied = copy_to(stream, here.view());
    const Csr turned = transposed(copied.view(), stream);
    const Csr turned_back = copy_to_host(turned.view(), stream);
    expect_same(turned_back.view(), turned_here.view());
  }
}

TEST(PatternsGpu, report_entries_that_lead_nowhere) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const auto said = [&](std::vector<std::int64_t> row, std::vector<std::int64_t> column) {
    const PatternCase one{"", 2, 3, std::move(row), std::move(column)};
    return message_of([&] {
      const Csr made = made_there(one, true, stream);
      stream.wait();
    });
  };
  EXPECT_EQ(said({0, 1}, {0, 2}), "(nothing was thrown)");
  const std::string far_row = said({0, 2}, {0, 0}), negative = said({0, 1}, {0, -1});
  EXPECT_EQ(far_row, "Csr: row[1] = 2 where there are 2: give numbers from 0 on");
  EXPECT_EQ(negative, "Csr: column[1] = -1 where there are 3: give numbers from 0 on");
  EXPECT_NE(said({0, std::int64_t{1} << 32}, {0, 0}).find("4294967296"), std::string::npos);
}

TEST(PatternsGpu, lists_of_two_places_are_refused) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Tensor here = i64({0}), there = copy_to(stream, here);
  EXPECT_NE(message_of([&] { Csr(1, 1, here, there); }).find("copy_to brings one to the other"),
            std::string::npos);
  EXPECT_NE(message_of([&] { Csr(0, 1, there, there); }).find("0 rows and 1 columns"),
            std::string::npos);
  const Csr made(1, 1, there, there);
  EXPECT_NE(message_of([&] { transposed(made.view()); }).find("give a stream"), std::string::npos);
}

TEST(PatternsGpu, a_graph_keeps_its_transpose) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(31, 33, 200, 1);
  Graph graph(made_there(one, true, stream), stream);
  const std::shared_ptr<const Csr> first = graph.backwards();
  EXPECT_EQ(first, graph.backwards());
  const Csr back = copy_to_host(first->view(), stream);
  const Csr here = one.csr();
  const Csr expected = transposed(here.view());
  expect_same(back.view(), expected.view());
}

}   // namespace
}   // namespace pumice::test
