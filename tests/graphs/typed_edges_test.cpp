// Files and folders of typed edges: good, cut and hostile.
#include <pumice/graphs/typed_edges.hpp>

#include <fstream>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

#include "support/data.hpp"
#include "support/gzipped.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

using test::message_of;
using Numbers = std::vector<std::int64_t>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Numbers numbers(const Tensor& tensor) {
  const auto values = tensor.span<std::int64_t>();
  return {values.begin(), values.end()};
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

constexpr const char* kTriples =
    "<a> <p> <b> .\n"
    "# a comment\n"
    "\n"
    "<b>\t<q> \"it says \\\"no.\\\" .\"@en .\n"
    "_:n1 <p> \"1994\"^^<int> . # behind it\n"
    "<b> <p> <a>.\n"
    "<a> <p> <b> .";

TEST(Triples, are_numbered_as_they_first_appear) {
  for (const std::string& text : {std::string(kTriples), test::gzipped(kTriples)}) {
    const TypedEdges edges = read_triples_from(bytes_of(text), "a.nt");
    EXPECT_EQ(edges.nodes, 5);
    EXPECT_EQ(edges.relations, 2);
    EXPECT_EQ(numbers(edges.edge_index), (Numbers{0, 1, 3, 1, 0, 1, 2, 4, 0, 1}));
    EXPECT_EQ(numbers(edges.edge_type), (Numbers{0, 1, 0, 0, 0}));
    EXPECT_EQ(edges.node_names,
              (std::vector<std::string>{"<a>", "<b>", "\"it says \\\"no.\\\" .\"@en", "_:n1",
                                        "\"1994\"^^<int>"}));
    EXPECT_EQ(edges.relation_names, (std::vector<std::string>{"<p>", "<q>"}));
  }
}

TEST(Triples, of_other_words_are_refused_with_their_line) {
  for (const char* line :
       {"<a> <p> <b>", "<a> <p> .", "<a> \"p\" <b> .", "\"a\" <p> <b> .", "<a <p> <b> .",
        "<a> <p> \"b .", "<a> <p> \"b\"^^c .", "<a> <p> <b> . <c>", "a,b,c", "<a> <p> \"b\\"}) {
    const std::string said = message_of(
        [&] { read_triples_from(bytes_of("<a> <p> <b> .\n" + std::string(line)), "a.nt"); });
    EXPECT_TRUE(said.starts_with("a.nt, line 2: ")) << line << ": " << said;
    EXPECT_NE(said.find("no triple of N-Triples"), std::string::npos) << said;
  }
}

TEST(NumberedTriples, say_how_many_there_are) {
  const TypedEdges edges =
      read_numbered_triples_from(bytes_of("62, 9, 7\r\n\n0,0,3\n 5 ,1, 5"), "a.csv");
  EXPECT_EQ(edges.nodes, 63);
  EXPECT_EQ(edges.relations, 10);
  EXPECT_EQ(numbers(edges.edge_index), (Numbers{62, 0, 5, 7, 3, 5}));
  EXPECT_EQ(numbers(edges.edge_type), (Numbers{9, 0, 1}));
  EXPECT_EQ(read_numbered_triples_from({}, "a.csv").nodes, 0);
  const auto said = [](const std::string& text) {
    return message_of([&] { read_numbered_triples_from(bytes_of(text), "a.csv"); });
  };
  EXPECT_EQ(
      said("0,1,2\n0,1\n"),
      "a.csv, line 2: \"0,1\" where three whole numbers are needed: source, relation, target");
  EXPECT_EQ(said("0,1,-2"),
            "a.csv, line 1: target \"-2\": a whole number from 0 to 2147483646 is needed");
  EXPECT_EQ(said("s,p,o"),
            "a.csv, line 1: source \"s\": a whole number from 0 to 2147483646 is needed");
  EXPECT_EQ(said("1,65535,2"),
            "a.csv, line 1: relation \"65535\": a whole number from 0 to 65534 is needed");
  EXPECT_NE(said("1 2,3,4").find("three whole numbers"), std::string::npos);
}

TEST(OpenKe, has_as_many_edges_as_its_first_line_says) {
  const TypedEdges edges = read_openke_from(bytes_of("2\n0 4 1\n2\t3 0\n"), "train2id.txt");
  EXPECT_EQ(edges.nodes, 5);
  EXPECT_EQ(numbers(edges.edge_index), (Numbers{0, 2, 4, 3}));
  EXPECT_EQ(numbers(edges.edge_type), (Numbers{1, 0}));
  const auto said = [](const std::string& text) {
    return message_of([&] { read_openke_from(bytes_of(text), "t.txt"); });
  };
  EXPECT_EQ(said("3\n0 1 0\n"),
            "t.txt: its first line announces 3 edges, and 1 follow; it was cut off, or correct "
            "that number");
  EXPECT_NE(said("").find("is empty"), std::string::npos);
  EXPECT_NE(said("0 1 0\n").find("number of edges \"0 1 0\""), std::string::npos);
  EXPECT_NE(said("1\n0 1\n").find("line 2: \"0 1\" where three"), std::string::npos);
}

TEST(Inverses, stand_behind_the_edges) {
  const TypedEdges both = with_inverses(read_openke_from(bytes_of("2\n0 4 1\n2 3 0\n"), "t.txt"));
  EXPECT_EQ(both.nodes, 5);
  EXPECT_EQ(both.relations, 4);
  EXPECT_EQ(numbers(both.edge_index), (Numbers{0, 2, 4, 3, 4, 3, 0, 2}));
  EXPECT_EQ(numbers(both.edge_type), (Numbers{2, 0, 3, 1}));
}

TEST(Gzip, damaged_or_cut_is_refused) {
  const std::string whole = test::gzipped("0,1,2\n3,0,4\n");
  const auto said = [](const std::string& text) {
    return message_of([&] { read_numbered_triples_from(bytes_of(text), "a.csv.gz"); });
  };
  EXPECT_EQ(read_numbered_triples_from(bytes_of(whole + whole), "a.csv.gz").edge_type.rows(), 4);
  for (std::size_t size = 2; size < whole.size(); ++size)
    EXPECT_NE(said(whole.substr(0, size)).find("cut off or is damaged"), std::string::npos) << size;
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;   // its checksum
  EXPECT_NE(said(damaged).find("cut off or is damaged"), std::string::npos);
  EXPECT_NE(said(whole + "more").find("4 bytes behind what gzip wrote"), std::string::npos);
  const std::string bomb = test::gzipped(std::string(300'000'000, '\n'));
  EXPECT_NE(said(bomb).find("would grow from"), std::string::npos);
}

TEST(EdgeFolder, is_told_by_its_files) {
  const test::TemporaryFolder folder;
  const auto said = [&](const std::filesystem::path& path) {
    return message_of([&] { read_typed_edges(path); });
  };
  const auto said_of = [&](const char* part) {
    return message_of([&] { read_typed_edges(folder / "", part); });
  };
  EXPECT_NE(said(folder / "none").find("there is no such folder"), std::string::npos);
  EXPECT_NE(said(folder / "").find("holds 0 files .nt"), std::string::npos);
  write(folder / "a.nt.gz", test::gzipped(kTriples));
  write(folder / "labels.tsv", "whatever");
  EXPECT_EQ(read_typed_edges(folder / "").nodes, 5);
  EXPECT_NE(said_of("test").find("has no train2id.txt, beside which test2id.txt"),
            std::string::npos);
  write(folder / "b.csv", "0,1,2\n");
  EXPECT_NE(said(folder / "").find("holds 2 files .nt"), std::string::npos);
  write(folder / "train2id.txt", "1\n0 2 0\n");
  write(folder / "test2id.txt", "1\n7 2 1\n");
  const TypedEdges edges = read_typed_edges(folder / "");
  EXPECT_EQ(edges.edge_type.rows(), 1);
  EXPECT_EQ(edges.nodes, 8);
  EXPECT_EQ(edges.relations, 2);
  const TypedEdges tested = read_typed_edges(folder / "", "test");
  EXPECT_EQ(numbers(tested.edge_index), (Numbers{7, 2}));
  EXPECT_EQ(numbers(tested.edge_type), (Numbers{1}));
  EXPECT_EQ(tested.nodes, 8);
  EXPECT_EQ(tested.relations, 2);
  EXPECT_NE(said_of("valid").find("valid2id.txt"), std::string::npos);
  EXPECT_NE(said_of("first").find("part = first: give train, valid or test"), std::string::npos);
  write(folder / "relation2id.txt", "3\nis part of 1\nis\t0\n is not 2\n");
  EXPECT_EQ(read_typed_edges(folder / "").relation_names,
            (std::vector<std::string>{"is", "is part of", " is not"}));
  EXPECT_EQ(read_typed_edges(folder / "").relations, 3);
  write(folder / "relation2id.txt", "1\nis 0\n");
  EXPECT_NE(said(folder / "").find("names 1 relations, and edges beside it have 2"),
            std::string::npos);
  for (const char* names : {"2\nis 0\n", "2\nis 0\nis 0\n", "2\nis 0\nin 2\n", "2\nis\n", "99\n"}) {
    write(folder / "relation2id.txt", names);
    EXPECT_NE(said(folder / "").find("relation2id.txt"), std::string::npos) << names;
  }
}

TEST(EdgeFolder, of_known_graphs_has_known_numbers) {
  struct Known {
    const char* folder;
    std::int64_t nodes, relations, edges;
  };
  for (const Known& known : {Known{"aifb", 8285, 45, 29'043},
                             {"am", 1'080'876, 12, 1'360'749},
                             {"openke_FB15K237", 14'541, 237, 272'115},
                             {"openke_WN18RR", 40'943, 11, 86'835}}) {
    PUMICE_NEEDS_DATA(folder, std::string("graphs/") + known.folder);
    const TypedEdges edges = read_typed_edges(folder);
    EXPECT_EQ(edges.nodes, known.nodes) << known.folder;
    EXPECT_EQ(edges.relations, known.relations) << known.folder;
    EXPECT_EQ(edges.edge_type.rows(), known.edges) << known.folder;
  }
}

}   // namespace
}   // namespace pumice
