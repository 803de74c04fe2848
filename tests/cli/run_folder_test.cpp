// `pumice run NETWORK FOLDER`: every scan on its own, results by name, what fails beside what goes
// on.
#include <pty.h>

#include <cerrno>
#include <cstring>
#include <set>

#include <pumice/nn/networks.hpp>
#include <pumice/nn/weights.hpp>

#include "program.hpp"

namespace pumice::test {
namespace {

class RunFolderTest : public ProgramTest {
 protected:
  RunFolderTest() {
    std::filesystem::create_directory(scans_);
    write_points(scan("b.ply"), slope(20, 30));
    write_points(scan("a.PLY"), slope(10, 30));
  }

  std::string scan(const std::string& name) const { return scans_ + '/' + name; }

  /// `pumice run` of a thin network over the folder.
  std::vector<std::string> thin(std::vector<std::string> more) const {
    more.insert(more.begin(), {"run", "minkunet42", scans_, "--width-factor", "0.1"});
    return more;
  }

  /// Weights of two classes, the first for labels 7 and 9, the second for 40.
  std::string weights() const {
    nn::NetworkOptions options;
    options.widths = {8, 8, 8, 8, 8, 8, 8, 8, 8};
    options.classes = 2;
    nn::save_weights(
        *nn::make_network("minkunet42", options), path("w.safetensors"),
        {{"widths", "8,8,8,8,8,8,8,8,8"}, {"classes", "first,second"}, {"labels", "7 9,40"}});
    return path("w.safetensors");
  }

  void write_labels(const std::string& name, std::size_t count) const {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t label = i % 3 == 0 ? 40 : 9;
      text.append(reinterpret_cast<const char*>(&label), sizeof label);
    }
    write_text(name, text);
  }

  /// The names in a folder of the test.
  std::set<std::string> names(const std::string& folder) const {
    std::set<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path(folder)))
      result.insert(entry.path().filename().string());
    return result;
  }

  static std::vector<nlohmann::json> lines(const std::string& text) {
    std::vector<nlohmann::json> result;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      result.push_back(nlohmann::json::parse(line, nullptr, false));
      EXPECT_FALSE(result.back().is_discarded()) << line;
    }
    return result;
  }

  const std::string scans_ = path("scans");
};

TEST_F(RunFolderTest, SaysAtCtrlCHowFarItCame) {
  const std::string shown = interrupted(thin({"--repeat", "1000"}), "minkunet42 [");
  EXPECT_NE(shown.find("pumice: stopped before the first scan was done"), std::string::npos)
      << shown;
  const std::string later = interrupted(thin({"--repeat", "300"}), "] 1/2");
  EXPECT_NE(later.find("pumice: stopped after 1 of 2 scans; their results are whole"),
            std::string::npos)
      << later;
}

TEST_F(RunFolderTest, EveryScanHasResultsNamedAfterIt) {
  write_text(scan("notes.txt"), "no scan");
  write_text(scan("._b.ply"), "no scan either");
  std::filesystem::create_directories(scan("older.ply"));
  const Outcome outcome =
      run_well(thin({"--out", path("results"), "--picture", path("results"), "--size", "320", "240",
                     "--html", path("pages/"), "--classes", path("found")}));
  EXPECT_EQ(names("results"),
            (std::set<std::string>{"a.png", "a.safetensors", "b.png", "b.safetensors"}));
  EXPECT_EQ(names("pages"), (std::set<std::string>{"a.html", "b.html"}));
  EXPECT_EQ(names("found"), (std::set<std::string>{"a.label", "b.label"}));
  EXPECT_EQ(std::filesystem::file_size(path("found/b.label")), 600 * 4u);
  // By name, a line each; what is left out is said.
  const std::size_t a = outcome.out.find("a.PLY: 300 points"), b = outcome.out.find("b.ply: 600");
  EXPECT_LT(a, b) << outcome.out;
  EXPECT_NE(b, std::string::npos) << outcome.out;
  for (const char* said : {"2 files and 1 sub-folder (._b.ply, notes.txt, older.ply/)",
                           "2 scans: 900 points", "untrained", "median", "found"})
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said << " in\n" << outcome.out;
  // The result is that of the scan alone, byte by byte.
  run_well({"run", "minkunet42", scan("b.ply"), "--width-factor", "0.1", "--out",
            path("b.safetensors"), "--html", path("b.html"), "--classes", path("b.label")});
  EXPECT_EQ(read_text(path("results/b.safetensors")), read_text(path("b.safetensors")));
  EXPECT_EQ(read_text(path("pages/b.html")), read_text(path("b.html")));
  EXPECT_EQ(read_text(path("found/b.label")), read_text(path("b.label")));
}

TEST_F(RunFolderTest, JsonIsALineAScanAndOneForAll) {
  std::filesystem::create_directory(path("labels"));
  write_labels(path("labels/a.label"), 300);
  write_labels(path("labels/b.label"), 600);
  const Outcome outcome = run_well({"run", "minkunet42", scans_, "--weights", weights(), "--labels",
                                    path("labels"), "--repeat", "2", "--json"});
  const std::vector<nlohmann::json> said = lines(outcome.out);
  ASSERT_EQ(said.size(), 3u);
  std::int64_t points = 0, right = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(said[i].at("scan"), scan(i == 0 ? "a.PLY" : "b.ply"));
    EXPECT_EQ(said[i].at("points"), i == 0 ? 300 : 600);
    EXPECT_EQ(said[i].at("total_ms").size(), 2u);
    for (const nlohmann::json& one : said[i].at("agreement").at("classes"))
      right += one.at("right").get<std::int64_t>();
    points += said[i].at("agreement").at("points").get<std::int64_t>();
  }
  EXPECT_EQ(points, 900);
  const nlohmann::json& all = said[2];
  EXPECT_EQ(all.at("scans"), 2);
  EXPECT_EQ(all.at("failed"), 0);
  EXPECT_EQ(all.at("points"), 900);
  EXPECT_EQ(all.at("trained"), true);
  EXPECT_EQ(all.at("agreement").at("points"), points);
  EXPECT_NEAR(all.at("agreement").at("accuracy").get<double>(),
              static_cast<double>(right) / static_cast<double>(points), 1e-12);
}

TEST_F(RunFolderTest, AScanThatFailsIsReportedAndTheRestGoOn) {
  write_text(scan("aa.bin"), "no points");
  write_labels(path("a.label"), 1);
  for (const bool json : {false, true}) {
    std::vector<std::string> arguments = thin({"--out", path("results")});
    if (json) arguments.emplace_back("--json");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find("pumice: " + scan("aa.bin") + ": "), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("1 of 3 scans failed"), std::string::npos) << outcome.err;
    EXPECT_EQ(names("results"), (std::set<std::string>{"a.safetensors", "b.safetensors"}));
    if (!json) {
      EXPECT_NE(outcome.out.find("2 scans: 900 points"), std::string::npos) << outcome.out;
      continue;
    }
    const std::vector<nlohmann::json> said = lines(outcome.out);
    ASSERT_EQ(said.size(), 4u);
    EXPECT_NE(said[1].at("error").get<std::string>().find("aa.bin"), std::string::npos);
    EXPECT_EQ(said[3].at("failed"), 1);
  }
}

TEST_F(RunFolderTest, LabelsAreFoundByName) {
  const std::vector<std::string> begin{"run",       "minkunet42", scans_,
                                       "--weights", weights(),    "--labels"};
  const auto with = [&](const std::string& labels) {
    std::vector<std::string> arguments = begin;
    arguments.push_back(labels);
    return arguments;
  };
  std::filesystem::create_directory(path("labels"));
  write_labels(path("labels/c.label"), 600);
  expect_refusal(with(path("labels")), {"--labels", "no file for any scan", "a.label"});
  expect_refusal(with(path("labels/c.label")), {"--labels", "c.label", "give one folder"});
  // A scan without labels, or with those of another one, is no part of the agreement.
  write_labels(path("labels/b.label"), 600);
  for (const std::size_t count : {std::size_t{0}, std::size_t{299}}) {
    if (count > 0) write_labels(path("labels/a.label"), count);
    const Outcome outcome = run(with(path("labels")));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find("a.label"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("1 of 2 scans failed"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out.find("agreement with the labels"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("1 scan: 600 points"), std::string::npos) << outcome.out;
  }
  // What the network finds can stand where labels do, and agrees with itself.
  run_well({"run", "minkunet42", scans_, "--weights", weights(), "--classes", path("found")});
  std::vector<std::string> again = with(path("found"));
  again.emplace_back("--json");
  const std::vector<nlohmann::json> said = lines(run_well(again).out);
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[2].at("agreement").at("accuracy"), 1.0);
  EXPECT_EQ(said[2].at("agreement").at("points"), 900);
}

TEST_F(RunFolderTest, MemoryIsThatOfOneScan) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps what was freed, so memory grows with every scan";
#endif
  const auto peak = [&] {
    const std::vector<nlohmann::json> said = lines(run_well(thin({"--json"})).out);
    return said.back().at("peak_mib").get<double>();
  };
  std::filesystem::remove(scan("a.PLY"));
  write_points(scan("b.ply"), slope(150, 150));
  const auto copies = [&](int from, int to) {
    for (int i = from; i < to; ++i)
      std::filesystem::copy_file(scan("b.ply"), scan("c" + std::to_string(i) + ".ply"));
  };
  copies(0, 3);   // by then the allocator has what it keeps for itself
  const double few = peak();
  copies(3, 12);
  EXPECT_LT(peak(), 1.1 * few + 2);
}

TEST_F(RunFolderTest, ResultsLieInFoldersOfTheirOwn) {
  const auto refused = [&](std::vector<std::string> more, const std::vector<std::string>& named) {
    const std::set<std::string> before = names("scans");
    expect_refusal(thin(std::move(more)), named);
    EXPECT_EQ(names("scans"), before);
  };
  write_text(path("taken"), "a file");
  refused({"--out", path("taken")}, {"--out", "taken", "folder"});
  refused({"--out", scans_}, {"--out", scans_, "another folder"});
  refused({"--html", path("no/pages")}, {"no/pages", "cannot be written"});
  write_points(scan("b.bin.ply"), slope(5, 5));
  run_well(thin({"--out", path("results")}));   // b and b.bin differ
  write_text(scan("b.npy"), "");
  refused({"--out", path("results")}, {"b.npy and b.ply", "same name"});
  refused({"--size", "320", "240"}, {"--size", "--picture"});
  // Weights that a result would replace.
  std::filesystem::remove(scan("b.npy"));
  std::filesystem::copy_file(weights(), path("results/b.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  const std::string before = read_text(path("results/b.safetensors"));
  expect_refusal({"run", "minkunet42", scans_, "--weights", path("results/b.safetensors"), "--out",
                  path("results")},
                 {"b.ply", "replace", "b.safetensors"});
  EXPECT_EQ(read_text(path("results/b.safetensors")), before);
  expect_refusal({"run", "second", scans_, "--classes", path("found")}, {"--classes", "second"});
}

TEST_F(RunFolderTest, AFolderIsAFolderWhereverItStands) {
  std::filesystem::create_directory(path("empty"));
  write_text(path("empty/readme.md"), "nothing");
  expect_refusal({"run", "minkunet42", path("empty")}, {"empty", ".bin", "sub-folders"});
  expect_refusal({"run", "minkunet42", scans_, scan("b.ply")}, {scans_, "folder", "alone"});
  expect_refusal({"run", "minkunet42", scan("b.ply"), scan("a.PLY"), "--classes", path("f.label")},
                 {"--classes", "one scan"});
  expect_refusal({"run", "minkunet42", scan("b.ply"), "--weights", weights(), "--labels", scans_},
                 {"--labels", "folder"});
  const std::vector<std::vector<std::string>> others{{"info"},
                                                     {"voxelize", "--out", path("o.safetensors")},
                                                     {"view", "--html", path("o.html")},
                                                     {"bench", "networks", "--scan"}};
  for (std::vector<std::string> command : others) {
    command.push_back(scans_);
    expect_refusal(command, {scans_ + " is a folder", scan("a.PLY"), "pumice run NETWORK"});
    command.back() = path("empty");
    expect_refusal(command, {"empty is a folder without scans", ".bin"});
  }
}

TEST_F(RunFolderTest, ATerminalHasABarAndTheSameLines) {
  const std::string program = program_path();
  int master = -1;
  const pid_t child = forkpty(&master, nullptr, nullptr, nullptr);
  if (child == 0) {
    execl(program.c_str(), "pumice", "run", "minkunet42", scans_.c_str(), "--width-factor", "0.1",
          nullptr);
    _exit(127);
  }
  ASSERT_GT(child, 0) << std::strerror(errno);
  std::string seen;
  std::array<char, 4096> piece{};
  for (;;) {   // until the program closes its end, which reads as an error
    const ssize_t got = read(master, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    seen.append(piece.data(), static_cast<std::size_t>(got));
  }
  close(master);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << seen;
  EXPECT_NE(seen.find("minkunet42 ["), std::string::npos) << seen;
  EXPECT_NE(seen.find("1/2"), std::string::npos) << seen;
  // Each line takes the place of the bar.
  EXPECT_NE(seen.find("\r\033[Ka.PLY: 300 points"), std::string::npos) << seen;
  EXPECT_NE(seen.find("\r\033[Kb.ply: 600 points"), std::string::npos) << seen;
}

}   // namespace
}   // namespace pumice::test
