// Lists of pairs that are a caller's own: what is refused, and that a map's own are not looked at.
#include <pumice/maps/kernel_map.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "maps/map_problem.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

template <class Call>
void expect_sentence(const Call& call, std::initializer_list<std::string> words) {
  const std::string sentence = message_of(call);
  for (const std::string& word : words)
    EXPECT_NE(sentence.find(word), std::string::npos) << sentence << " does not say " << word;
}

struct Lists {
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> in;
  std::vector<std::int32_t> out;
  std::vector<std::int32_t> in_order{};
  std::vector<std::int32_t> out_order{};

  KernelMapView view() const {
    return {.offsets = 2,
            .in_rows = 3,
            .out_rows = 3,
            .offset_begin = begin,
            .in = in,
            .out = out,
            .out_order = out_order,
            .in_order = in_order};
  }
};

Lists good_lists() {
  return {.begin = {0, 2, 3}, .in = {2, 0, 1}, .out = {0, 1, 0}};
}

TEST(KernelMapLists, that_are_good_pass) {
  Lists lists = good_lists();
  check_lists(lists.view(), "test");
  KernelMapView sorted = lists.view();
  sorted.sorted_by_out = true;
  check_lists(sorted, "test");
  lists.out_order = {1, 0, 2};
  check_lists(lists.view(), "test");
  check_lists({.offset_begin = std::span(lists.begin).first(1)}, "test");
}

TEST(KernelMapLists, with_rows_that_there_are_not_are_refused) {
  for (const std::int32_t hostile : {3, -1, -2, std::numeric_limits<std::int32_t>::max()}) {
    const std::string number = "= " + std::to_string(hostile);
    Lists in = good_lists();
    in.in[1] = hostile;
    expect_sentence([&] { check_lists(in.view(), "test"); }, {"test: in[1]", number});
    Lists out = good_lists();
    out.out[2] = hostile;
    expect_sentence([&] { check_lists(out.view(), "test"); }, {"test: out[2]", number});
    Lists order = good_lists();
    order.out_order = {0, hostile, 1};
    expect_sentence([&] { check_lists(order.view(), "test"); }, {"out[1]", number});
  }
}

TEST(KernelMapLists, that_break_what_they_say_are_refused) {
  Lists lists = good_lists();
  lists.out = {1, 1, 0};
  expect_sentence([&] { check_lists(lists.view(), "test"); }, {"out[1] = 1", "twice in offset 0"});
  lists = good_lists();
  KernelMapView sorted = lists.view();
  sorted.sorted_by_in = true;
  expect_sentence([&] { check_lists(sorted, "test"); }, {"in[1] = 0", "sorted_by_in"});
  KernelMapView even = lists.view();
  even.has_identity_offset = true;
  expect_sentence([&] { check_lists(even, "test"); }, {"has_identity_offset", "odd"});
  for (const std::vector<std::int64_t>& begin :
       {std::vector<std::int64_t>{0, 2}, {0, 2, 4}, {0, 4, 3}, {0, -1, 3}, {1, 2, 3}, {0, 2, 2}}) {
    lists.begin = begin;
    expect_sentence([&] { check_lists(lists.view(), "test"); }, {"test"});
  }
  lists = good_lists();
  lists.out_order = {0, 1};
  expect_sentence([&] { check_lists(lists.view(), "test"); }, {"2 rows of 3"});
  lists.out_order = {0, 1, 1};
  expect_sentence([&] { check_lists(lists.view(), "test"); }, {"out[2] = 1", "twice"});
}

TEST(KernelMapLists, put_into_the_view_of_a_map_are_looked_at) {
  const auto set = make_set({{0, 5}, {0, 0}, {0, 1}, {0, 2}}, 1);
  const auto map = submanifold_map(set, submanifold_window(1, {3}, {1}));
  check_lists(map->view(), "test");
  check_lists(transposed(map->view()), "test");
  KernelMapView view = map->view();
  const std::vector<std::int32_t> hostile(view.in.size(), 1000);
  view.in = hostile;
  expect_sentence([&] { check_lists(view, "test"); }, {"in[0] = 1000"});
  view = map->view();
  view.in_rows = 2;
  EXPECT_THROW(check_lists(view, "test"), UserError);
}

TEST(KernelMapLists, are_looked_at_when_a_map_is_made_of_them) {
  const auto set = make_set({{0, 5}, {0, 0}, {0, 1}, {0, 2}}, 1);
  const auto map = submanifold_map(set, submanifold_window(1, {3}, {1}));
  const auto made_with = [&](std::int32_t row) {
    KernelPairs pairs;
    pairs.offset_begin = Buffer<std::int64_t>(4);
    std::ranges::copy(map->view().offset_begin, pairs.offset_begin.data());
    pairs.in = Buffer<std::int32_t>(8);
    pairs.out = Buffer<std::int32_t>(8);
    std::ranges::copy(map->view().in, pairs.in.data());
    std::ranges::copy(map->view().out, pairs.out.data());
    pairs.in[3] = row;
    pairs.count = map->pair_count();
    return KernelMap(map->window(), set, set, std::move(pairs), true);
  };
  made_with(map->view().in[3]);
  expect_sentence([&] { made_with(4); }, {"KernelMap: in[3] = 4", "0 to 3"});
}

}   // namespace
}   // namespace pumice::test
