// `pumice inspect` on matrices and edges that are counted by hand.
// Covers inspect and edges_input.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/safetensors.hpp>

#include "program.hpp"

namespace pumice::test {
namespace {

using Json = nlohmann::json;

class InspectTest : public ProgramTest {
 protected:
  /// Five rows: 4 entries, of which two are one place, none, 1, none, none.
  std::string matrix() const {
    write_text(path("m.mtx"),
               "%%MatrixMarket matrix coordinate real general\n5 3 5\n"
               "1 1 2\n1 3 -1\n1 3 4\n3 2 3\n1 2 1\n");
    return path("m.mtx");
  }
  /// Seven nodes; relation 0 has three edges, 1 none, 2 one.
  std::string folder() const {
    std::filesystem::create_directories(path("edges"));
    write_text(path("edges/edges.csv"), "0,0,1\n2,0,1\n3,2,6\n4,0,6\n");
    return path("edges");
  }
  static Tensor numbers(const std::vector<std::int64_t>& all, Shape shape) {
    return Tensor::from(std::span<const std::int64_t>(all), shape);
  }
  static std::vector<std::vector<std::int64_t>> classes_of(const Json& said) {
    std::vector<std::vector<std::int64_t>> classes;
    for (const Json& one : said.at("row_lengths"))
      classes.push_back({one.at("from"), one.at("to"), one.at("rows")});
    return classes;
  }
};

TEST_F(InspectTest, CountsRowsOfAMatrix) {
  const Json said = run_json({"inspect", matrix()});
  EXPECT_EQ(said.at("rows"), 5);
  EXPECT_EQ(said.at("columns"), 3);
  EXPECT_EQ(said.at("entries"), 5);
  EXPECT_EQ(said.at("longest_row"), 4);
  EXPECT_EQ(said.at("empty_rows"), 3);
  EXPECT_EQ(classes_of(said),
            (std::vector<std::vector<std::int64_t>>{{0, 0, 3}, {1, 1, 1}, {2, 3, 0}, {4, 7, 1}}));
  EXPECT_FALSE(said.contains("relations"));
  const std::string words = run_well({"inspect", matrix()}).out;
  for (const char* part : {"m.mtx: 5 x 3, 5 entries\n", "longest row 4, empty rows 3, 1.00 entries",
                           "      0     3  " /* 40 marks, of 3 rows */, "    2-3     0\n"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " is not in: " << words;
  EXPECT_NE(words.find("3  " + std::string(40, '#') + "\n"), std::string::npos) << words;
  EXPECT_NE(words.find("1  " + std::string(14, '#') + "\n"), std::string::npos) << words;
}

TEST_F(InspectTest, CountsBothTrianglesOfASymmetricMatrix) {
  write_text(path("s.mtx"),
             "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n"
             "2 1\n3 1\n3 3\n");
  const Json said = run_json({"inspect", path("s.mtx")});
  EXPECT_EQ(said.at("entries"), 5);
  EXPECT_EQ(said.at("longest_row"), 2);
  EXPECT_EQ(said.at("empty_rows"), 0);
}

TEST_F(InspectTest, TakesMatricesOfNothing) {
  for (const auto& [rows, columns] : {std::pair{0, 0}, {0, 4}, {4, 0}, {1, 1}}) {
    write_text(path("none.mtx"), "%%MatrixMarket matrix coordinate pattern general\n" +
                                     std::to_string(rows) + " " + std::to_string(columns) + " 0\n");
    const Json said = run_json({"inspect", path("none.mtx"), "--picture", path("none.png")});
    EXPECT_EQ(said.at("longest_row"), 0);
    EXPECT_EQ(said.at("empty_rows"), rows);
    EXPECT_EQ(said.at("row_lengths").size(), rows > 0 ? 1u : 0u);
    EXPECT_EQ(run_well({"inspect", path("none.mtx")}).code, 0);
  }
}

TEST_F(InspectTest, NamesRelationsWithMostEdgesFirst) {
  for (const std::string& named : {folder(), folder() + "/"}) {
    const Json said = run_json({"inspect", named});
    EXPECT_EQ(said.at("rows"), 7);
    EXPECT_EQ(said.at("columns"), 7);
    EXPECT_EQ(said.at("longest_row"), 2);   // nodes 1 and 6
    EXPECT_EQ(said.at("empty_rows"), 5);
    std::vector<std::pair<int, int>> relations;
    for (const Json& one : said.at("relations"))
      relations.emplace_back(one.at("number"), one.at("edges"));
    EXPECT_EQ(relations, (std::vector<std::pair<int, int>>{{0, 3}, {2, 1}, {1, 0}}));
    EXPECT_NE(run_well({"inspect", named}).out.find("edges: 7 x 7, 4 entries of 3 relations"),
              std::string::npos);
  }
}

TEST_F(InspectTest, OfManyRelationsItShowsBothEnds) {
  // Relation r has r + 1 edges, and a name that a terminal must not be given.
  std::string text;
  for (int r = 0; r < 12; ++r) {
    for (int e = 0; e <= r; ++e)
      text += "<a" + std::to_string(e) + "> <relation" + std::to_string(r) + "\x1b[31m> <b> .\n";
  }
  std::filesystem::create_directories(path("named"));
  write_text(path("named/edges.nt"), text);
  const std::string words = run_well({"inspect", path("named")}).out;
  EXPECT_EQ(words.find('\x1b'), std::string::npos) << words;
  for (int r = 0; r < 12; ++r) {
    const std::string name = "<relation" + std::to_string(r) + "\\x1b[31m>";
    EXPECT_EQ(words.find(name) != std::string::npos, r < 5 || r > 6) << words;
  }
  EXPECT_LT(words.find("<relation11"), words.find("<relation0\\"));
  EXPECT_EQ(run_json({"inspect", path("named")}).at("relations").size(), 12u);
}

TEST_F(InspectTest, SaysWhatTheMatrixWouldBeCutInto) {
  const Json said = run_json({"inspect", matrix(), "--channels", "64"}).at("spmm");
  EXPECT_EQ(said.at("channels"), 64);
  EXPECT_EQ(said.at("device"), "cpu");
  EXPECT_EQ(said.at("cut"), "csr");
  const std::string plan = said.at("plan");
  const std::string reason = said.at("reason");
  EXPECT_TRUE(plan.starts_with("csr/ranges of ")) << plan;
  EXPECT_NE(run_well({"inspect", matrix()})
                .out.find("spmm f32, 32 channels, cpu: " + plan + ": " + reason),
            std::string::npos);
  // Two of relation 0 lead to node 1.
  EXPECT_EQ(run_json({"inspect", folder()}).at("segments"), 3);
  EXPECT_NE(run_well({"inspect", folder()}).out.find("rgms: 3 segments"), std::string::npos);
  expect_refusal({"inspect", matrix(), "--channels", "0"}, {"--channels 0", "features have 1"});
  expect_refusal({"inspect", matrix(), "--device", "gpu"}, {"gpu"});
}

TEST_F(InspectTest, TakesEdgesOfASafetensorsFile) {
  const auto write = [&](const char* name, const std::vector<NamedTensor>& tensors) {
    write_safetensors(path(name), tensors);
    return path(name);
  };
  const Tensor edges = numbers({0, 2, 2, 5, 1, 1, 1, 0}, {2, 4}),
               types = numbers({0, 3, 3, 0}, {4});
  const Tensor features = Tensor::zeros({9, 2}, DType::f32);
  const Json plain = run_json({"inspect", write("e.safetensors", {{"edge_index", edges}})});
  EXPECT_EQ(plain.at("rows"), 6);
  EXPECT_EQ(plain.at("longest_row"), 3);
  EXPECT_FALSE(plain.contains("relations"));
  const Json typed = run_json(
      {"inspect", write("t.safetensors",
                        {{"edge_index", edges}, {"edge_type", types}, {"features", features}})});
  EXPECT_EQ(typed.at("rows"), 9);
  EXPECT_EQ(typed.at("relations").size(), 4u);
  EXPECT_EQ(typed.at("segments"), 3);
  const Json none =
      run_json({"inspect", write("n.safetensors", {{"edge_index", numbers({}, {2, 0})}})});
  EXPECT_EQ(none.at("rows"), 0);
  expect_refusal({"inspect", write("b.safetensors", {{"edge_index", numbers({0, -1}, {2, 1})}})},
                 {"b.safetensors", "edge_index[1][0] = -1 where there is 1 node;"});
  const Tensor negative = numbers({0, 3, -3, 0}, {4});
  expect_refusal(
      {"inspect", write("s.safetensors", {{"edge_index", edges}, {"edge_type", negative}})},
      {"edge_type[2] = -3"});
  expect_refusal({"inspect", write("f.safetensors", {{"features", features}})},
                 {"\"edge_index\" is missing"});
}

TEST_F(InspectTest, DrawsAPicture) {
  const Outcome said =
      run_well({"inspect", matrix(), "--picture", path("p.png"), "--size", "400", "300"});
  EXPECT_NE(said.out.find("picture written to " + path("p.png")), std::string::npos) << said.out;
  const std::string bytes = read_text(path("p.png"));
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(bytes.substr(16, 8), std::string("\0\0\x01\x90\0\0\x01\x2c", 8));   // 400 x 300
  EXPECT_EQ(run_json({"inspect", folder(), "--picture", path("q.png")}).at("picture"),
            path("q.png"));
}

TEST_F(InspectTest, SaysWhatIsWrong) {
  expect_refusal({"inspect", path("absent.mtx")}, {"absent.mtx", "cannot be opened"});
  expect_refusal({"inspect", path("absent.mtx"), "--picture", path("p.gif")}, {".png"});
  expect_refusal({"inspect", matrix(), "--picture", matrix()}, {"would be read and written over"});
  expect_refusal({"inspect", matrix(), "--size", "400", "300"}, {"--size", "--picture"});
  expect_refusal({"inspect", matrix(), "--picture", path("p.png"), "--size", "10", "300"},
                 {"--size", "width = 10"});
  EXPECT_FALSE(std::filesystem::exists(path("p.png")));
  std::filesystem::create_directories(path("empty"));
  expect_refusal({"inspect", path("empty")}, {"empty"});
  expect_refusal({"inspect"}, {"INPUT is missing"});
}

}   // namespace
}   // namespace pumice::test
