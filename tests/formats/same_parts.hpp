// Whether two decompositions are the same, list by list.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/formats/decomposed.hpp>

namespace pumice::test {

template <class T> std::vector<T> listed(std::span<const T> list) {
  return {list.begin(), list.end()};
}

/// Both on the CPU.
inline void expect_same_parts(const Decomposed& got, const Decomposed& expected) {
  EXPECT_EQ(got.rows(), expected.rows());
  EXPECT_EQ(got.columns(), expected.columns());
  EXPECT_EQ(got.entries(), expected.entries());
  EXPECT_EQ(listed(got.row_begin()), listed(expected.row_begin()));
  EXPECT_EQ(listed(got.place()), listed(expected.place()));
  ASSERT_EQ(got.views().size(), expected.views().size());
  for (std::size_t i = 0; i < got.views().size(); ++i) {
    SCOPED_TRACE("part " + std::to_string(i));
    const PartView& one = got.views()[i];
    const PartView& other = expected.views()[i];
    EXPECT_EQ(one.shape, other.shape);
    EXPECT_EQ(listed(one.row), listed(other.row));
    EXPECT_EQ(listed(one.slot_begin), listed(other.slot_begin));
    EXPECT_EQ(listed(one.column), listed(other.column));
    EXPECT_EQ(listed(one.entry), listed(other.entry));
    EXPECT_EQ(listed(one.type_begin), listed(other.type_begin));
    EXPECT_EQ(one.is_single, other.is_single);
  }
}

}   // namespace pumice::test
