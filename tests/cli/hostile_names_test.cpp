// Whatever files, their names and arguments hold, a terminal gets lines of text and no commands.
// Covers every subcommand: all that each prints is looked at, byte by byte.
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <pumice/core/safetensors.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/nn/weights.hpp>

#include "core/printable.hpp"
#include "program.hpp"

namespace pumice::test {
namespace {

/// A colour, a title, a new line, text turned round, and bytes that are no UTF-8; as long as the
/// name of a file may be with ".safetensors" behind it.
const std::string kEvil =
    "a\x1b[31mb\x1b]0;t\x07\n\r\xe2\x80\xae"
    "cba\xc2\x9b"
    "2J\xff\xc0" +
    std::string(200, 'n');
constexpr std::size_t kWidest = 1600;   // columns of a line: a sentence that names two long paths

class HostileNamesTest : public ProgramTest {
 protected:
  HostileNamesTest() { write_points(scan_, slope(20, 30)); }

  std::string evil(const std::string& ending) const { return path(kEvil + ending); }

  /// Runs the program and looks at every byte it prints.
  Outcome look(const std::vector<std::string>& arguments, int code,
               const std::string& program = program_path()) const {
    SCOPED_TRACE("pumice " + printable(arguments.empty() ? "" : arguments[0]) + " … " +
                 printable(arguments.empty() ? "" : arguments.back()));
    const Outcome outcome = run_program(folder_, arguments, program);
    EXPECT_EQ(outcome.code, code) << printable_message(outcome.err);
    EXPECT_EQ(outcome.err.empty(), code == 0) << printable_message(outcome.err);
    EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
        << printable_message(outcome.err);
    for (const std::string& text : {outcome.out, outcome.err}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(printable(line, line.size()), line);
        EXPECT_LT(line.size(), arguments.back() == "--json" ? text.size() + 1 : kWidest);
      }
    }
    return outcome;
  }
  void look_twice(std::vector<std::string> arguments) const {
    look(arguments, 0);
    arguments.emplace_back("--json");
    EXPECT_TRUE(nlohmann::json::accept(look(arguments, 0).out));
  }

  const std::string scan_ = path(kEvil + ".ply");
};

TEST_F(HostileNamesTest, OfFilesThatAreRead) {
  look_twice({"info", scan_});
  look_twice({"voxelize", scan_, "--out", evil(".safetensors")});
  look_twice({"view", scan_, "--picture", evil(".png"), "--html", evil(".html")});
  look_twice({"run", "minkunet42", scan_, "--width-factor", "0.1", "--out", evil(".safetensors"),
              "--picture", evil(".png"), "--html", evil(".html")});
  look_twice({"simulate", "--beams", "32", "--out", evil("2.ply")});
  const Tensor coords = Tensor::from<std::int32_t>(std::vector<std::int32_t>{0, 0, 0, 1}, {2, 2});
  const Tensor features = Tensor::full({2, 4}, DType::f32, 1);
  const Tensor weight = Tensor::full({3, 4, 2}, DType::f32, 1);
  write_safetensors(
      evil(".in"),
      std::vector<NamedTensor>{{"coords", coords}, {"features", features}, {"weight", weight}});
  look_twice({"conv", evil(".in"), evil("2.safetensors")});
  look({"conv", evil(".in"), evil("2.safetensors"), "--mode", "inverse"}, 1);
  look({"conv", evil(".in"), evil("2.safetensors"), "--kernel", "5"}, 1);
}

/// Of graphs: metadata that says a network, names of tensors, and terms of triples.
TEST_F(HostileNamesTest, OfGraphsThatAreRead) {
  const std::string text = "\x1b[31ma\n\xe2\x80\xae" + std::string(5000, 'e');   // is UTF-8
  const Tensor matrices = Tensor::full({2, 3, 2}, DType::f32, 1);
  const std::vector<NamedTensor> weights{{"convs.0.weight", matrices}};
  std::map<std::string, std::string> said{
      {"network", "rgcn"}, {"in_channels", "3"}, {"widths", "2"}, {"relations", "2"}};
  write_safetensors(evil(".w"), weights, said);
  std::filesystem::create_directory(evil(""));
  std::ofstream(evil("") + "/" + kEvil + ".csv") << "0,0,2\n1,1,0\n";
  look_twice({"rgcn", evil(".w"), evil(""), evil("2.safetensors")});
  std::ofstream(evil("") + "/" + kEvil + ".csv") << "0," << kEvil << ",2\n";
  look({"rgcn", evil(".w"), evil(""), evil("2.safetensors")}, 1);
  std::filesystem::rename(evil("") + "/" + kEvil + ".csv", evil("") + "/" + kEvil + ".nt");
  look({"rgcn", evil(".w"), evil(""), evil("2.safetensors")}, 1);
  for (const char* key : {"network", "widths", "relations", "in_channels", "aggr", "activation"}) {
    std::map<std::string, std::string> evil_said = said;
    evil_said[key] = text;
    write_safetensors(evil(".w"), weights, evil_said);
    look({"rgcn", evil(".w"), evil(""), evil("2.safetensors")}, 1);
  }
  write_safetensors(evil(".w"), std::vector<NamedTensor>{{text, matrices}}, said);
  look({"rgcn", evil(".w"), evil(""), evil("2.safetensors")}, 1);
  write_safetensors(evil(".w"),
                    std::vector<NamedTensor>{{"convs.0.weight", matrices}, {text, matrices}}, said);
  look({"rgcn", evil(".w"), evil(".w"), evil("2.safetensors")}, 1);
}

TEST_F(HostileNamesTest, OfPlacesInTheEnvironment) {
  std::filesystem::create_directory(evil(".bundle"));
  write_text(evil(".bundle") + "/" + kEvil + ".bundle", "no kernels");
  for (const std::string variable : {"PUMICE_CACHE=", "PUMICE_BUNDLE=", "PUMICE_NVRTC="}) {
    const Outcome said = run_program(
        folder_, {variable + evil(".bundle"), program_path(), "doctor"}, "/usr/bin/env");
    EXPECT_EQ(said.code, 0);
    for (const std::string& text : {said.out, said.err}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);)
        EXPECT_EQ(printable(line, line.size()), line) << variable;
    }
  }
  look({"PUMICE_SYNC=" + kEvil, program_path(), "doctor"}, 1, "/usr/bin/env");
}

TEST_F(HostileNamesTest, OfFilesThatAreRefused) {
  for (const char* ending : {".bin", ".pcd", ".ply", ".npy", ".npz", ".docx"}) {
    write_text(evil(ending), kEvil);
    look({"info", evil(ending)}, 1);
  }
  write_text(evil(".ply"), "ply\nformat " + kEvil.substr(0, 8) + " 1.0\n");
  look({"info", evil(".ply")}, 1);
  look({"info", evil("absent.ply")}, 1);
  look({"info", folder_.string() + "/" + kEvil + kEvil + ".ply"}, 1);   // too long for a name
  write_points(scan_, slope(20, 30));
  write_text(evil(".label"), "abc");
  look({"view", scan_, "--labels", evil(".label"), "--picture", path("a.png")}, 1);
  look({"view", scan_, "--picture", evil(".jpg")}, 1);
  look({"view", scan_, "--picture", evil(".png") + "/a.png"}, 1);
  look({"run", "minkunet42", scan_, "--weights", scan_}, 1);
  look({"run", "minkunet42", scan_, "--out", scan_}, 1);
  look({"conv", scan_, path("out.safetensors")}, 1);
  look({"bench", "scaling", "--scan", evil("absent.ply")}, 1);
}

TEST_F(HostileNamesTest, OfAFolderOfScans) {
  const std::string folder = evil("");
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(scan_, folder + "/" + kEvil + ".ply");
  write_text(folder + "/" + kEvil + ".txt", "no scan");
  std::vector<std::string> arguments{"run",   "minkunet42",     folder,   "--width-factor", "0.1",
                                     "--out", evil(".results"), "--html", evil(".results")};
  EXPECT_NE(look(arguments, 0).out.find("1 file (a\\x1b["), std::string::npos);
  arguments.emplace_back("--json");
  look(arguments, 0);
  EXPECT_TRUE(std::filesystem::exists(evil(".results") + "/" + kEvil + ".safetensors"));
  look({"info", folder}, 1);
  look({"run", "minkunet42", folder, "--out", folder}, 1);
  look({"run", "minkunet42", folder, "--labels", folder}, 1);
  look({"run", "minkunet42", folder, scan_}, 1);
}

TEST_F(HostileNamesTest, OfArguments) {
  look({kEvil}, 2);
  look({"info", scan_, "--" + kEvil}, 2);
  look({"info", scan_, "--levels", kEvil}, 2);
  look({"info", scan_, "--layout", kEvil}, 1);
  look({"run", kEvil, scan_}, 1);
  for (const char* option : {"--weights", "--widths", "--device", "--dataflow", "--reduction"})
    look({"run", "minkunet42", scan_, option, kEvil}, 1);
  for (const char* option : {"--precision", "--seed", "--voxel"})
    look({"run", "minkunet42", scan_, option, kEvil}, 2);
  look({"kernels", "list", "--arch", kEvil}, 1);
  look({"kernels", "list", "--channels", kEvil}, 1);
}

/// Names of 5,000 characters with colours and new lines in them, and metadata of 400,000.
TEST_F(HostileNamesTest, OfWhatWeightsSay) {
  const std::string evil_class = "\x1b[31m\n\xe2\x80\xae" + std::string(5000, 'c');
  const auto weights = [&](const std::map<std::string, std::string>& metadata) {
    nn::NetworkOptions options;
    options.widths = {8, 8, 8, 8, 8, 8, 8, 8, 8};
    options.classes = 2;
    nn::save_weights(*nn::make_network("minkunet42", options), evil(".w"), metadata);
    return evil(".w");
  };
  std::string labels;
  for (std::uint32_t i = 0; i < 600; ++i)
    labels.append(reinterpret_cast<const char*>(&i), sizeof i);
  write_text(evil(".label"), labels);
  const std::string thin = "8,8,8,8,8,8,8,8,8";
  const Outcome outcome =
      look({"run", "minkunet42", scan_, "--weights",
            weights({{"widths", thin}, {"classes", evil_class + ",b"}, {"labels", "1,2"}}),
            "--labels", evil(".label"), "--picture", evil(".png"), "--html", evil(".html")},
           0);
  EXPECT_NE(outcome.out.find("\\x1b[31m\\n\\u202ecc"), std::string::npos) << "the table of classes";
  look({"run", "minkunet42", scan_, "--weights", weights({{"network", evil_class}})}, 1);
  const std::string large(400000, '\x1b');
  for (const char* key : {"widths", "features", "voxel_size", "outputs", "labels", "colours"}) {
    std::map<std::string, std::string> metadata{{"classes", "a,b"}, {"widths", thin}};
    metadata[key] = large;
    look({"run", "minkunet42", scan_, "--weights", weights(metadata)}, 1);
  }
  const Tensor one = Tensor::full({1}, DType::f32, 1);
  write_safetensors(evil(".w"), std::vector<NamedTensor>{{evil_class, one}});
  look({"run", "minkunet42", scan_, "--weights", evil(".w")}, 1);
  look({"conv", evil(".w"), path("out.safetensors")}, 1);
}

/// Opening a pipe would wait for its other end: a test that hangs here found one that does.
TEST_F(HostileNamesTest, APipeIsRefusedByEveryOptionThatReads) {
  for (const char* ending :
       {".bin", ".pcd.bin", ".pcd", ".ply", ".npy", ".npz", ".label", ".safetensors"})
    ASSERT_EQ(mkfifo(path(std::string("pipe") + ending).c_str(), 0600), 0);
  for (const char* ending : {".bin", ".pcd.bin", ".pcd", ".ply", ".npy", ".npz"}) {
    const std::string pipe = path(std::string("pipe") + ending);
    expect_refusal({"info", pipe}, {pipe, "not a regular file"});
  }
  const std::string pipe = path("pipe.ply");
  expect_refusal({"voxelize", pipe, "--out", path("v.safetensors")}, {pipe, "not a regular file"});
  expect_refusal({"view", pipe, "--picture", path("v.png")}, {pipe, "not a regular file"});
  expect_refusal({"bench", "scaling", "--scan", pipe}, {pipe, "not a regular file"});
  write_points(path("scan.ply"), slope(20, 30));
  expect_refusal(
      {"view", path("scan.ply"), "--picture", path("v.png"), "--labels", path("pipe.label")},
      {path("pipe.label"), "not a regular file"});
  expect_refusal({"run", "second", path("scan.ply"), "--weights", path("pipe.safetensors")},
                 {path("pipe.safetensors"), "not a regular file"});
  expect_refusal({"conv", path("pipe.safetensors"), path("out.safetensors")},
                 {path("pipe.safetensors"), "not a regular file"});
}

/// Runs under a limit of 20,000 bytes a file, which a result of 600 points in a page passes.
TEST_F(HostileNamesTest, ALimitOnTheSizeOfFilesIsASentence) {
  write_points(path("scan.ply"), slope(20, 30));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = 20000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);   // of this process, and the one it starts
  const Outcome outcome = run({"view", path("scan.ply"), "--html", path("out.html")});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "pumice: " + path("out.html") + ": cannot be written: File too large\n");
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_FALSE(entry.path().filename().string().starts_with("out.")) << entry.path();
}

TEST_F(HostileNamesTest, FilesOfTorchSaveAreToldApart) {
  write_points(path("scan.ply"), slope(20, 30));
  write_text(path("net.pth"), std::string("PK\x03\x04\x00\x00\x08\x08", 8) + std::string(100, 'x'));
  expect_refusal({"run", "minkunet42", path("scan.ply"), "--weights", path("net.pth")},
                 {path("net.pth"), "a file of torch.save", "`pumice convert`"});
}

}   // namespace
}   // namespace pumice::test
