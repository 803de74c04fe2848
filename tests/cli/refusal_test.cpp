// Bad input ends in one sentence, a non-zero exit and no file.
// Covers every subcommand: arguments, scans, weights and safetensors that cannot be right.
#include <sys/stat.h>

#include <cstdlib>
#include <limits>
#include <tuple>

#include <pumice/core/safetensors.hpp>

#include "program.hpp"

namespace pumice::test {
namespace {

class RefusalTest : public ProgramTest {
 protected:
  RefusalTest() { write_points(scan_, slope(20, 30)); }

  /// Refused, and nothing in the folder but what was there before and what the program said.
  void expect_nothing_written(const std::vector<std::string>& arguments,
                              const std::vector<std::string>& named) const {
    expect_refusal(arguments, named);
    for (const char* name : {"out.safetensors", "out.ply", "out.png"}) {
      EXPECT_FALSE(std::filesystem::exists(path(name))) << name;
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("out."))
          << "left behind: " << entry.path();
    }
  }

  std::vector<std::string> run_with(std::vector<std::string> more) const {
    std::vector<std::string> arguments{
        "run", "minkunet42", scan_, "--width-factor", "0.25", "--out", path("out.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::string scan_ = path("slope.ply");
};

TEST_F(RefusalTest, ArgumentsThatSayNothing) {
  expect_nothing_written({}, {"no command", "info, run, tune", "doctor"});
  expect_nothing_written({"paint"}, {"\"paint\"", "info, run, tune", "doctor"});
  expect_nothing_written({"--frobnicate"}, {"no command", "--frobnicate", "info, run, tune"});
  expect_nothing_written({"info"}, {"SCAN", "`pumice info --help`"});
  expect_nothing_written({"info", scan_, "--colour", "red"}, {"--colour", "`pumice info --help`"});
  expect_nothing_written({"info", scan_, "--level", "3"},
                         {"no option --level of info", "--levels"});
  expect_nothing_written({"info", scan_, "--jsn"}, {"no option --jsn of info; is --json meant?"});
  expect_nothing_written({"doctr"}, {"no command \"doctr\"; is doctor meant?"});
  expect_nothing_written({"kernels", "biuld"},
                         {"no command \"biuld\" of kernels; is build meant?"});
  expect_nothing_written({"simulate"}, {"--out", "`pumice simulate --help`"});
  expect_nothing_written({"info", scan_, "--levels", "many"},
                         {"--levels many: give a whole number"});
  expect_nothing_written({"conv", scan_, path("out.safetensors"), "--kernel", "99999999999"},
                         {"--kernel", "99999999999", "`pumice conv --help`"});
}

TEST_F(RefusalTest, WhatTheParserFindsIsASentenceWithARemedy) {
  expect_nothing_written({"run"}, {"NETWORK is missing: `pumice run NETWORK SCAN", "--help"});
  expect_nothing_written({"simulate"}, {"--out is missing: `pumice simulate --out …`"});
  expect_nothing_written({"info", scan_, scan_},
                         {scan_, "one argument too many: `pumice info SCAN`"});
  expect_nothing_written({"info", scan_, "-q"}, {"no option -q of info; `pumice info --help`"});
  expect_nothing_written({"info", scan_, "--threads"},
                         {"--threads has no value behind it; give a whole number"});
  expect_nothing_written({"info", scan_, "--threads", "all"},
                         {"--threads all: give a whole number"});
  expect_nothing_written({"info", scan_, "--json=maybe"},
                         {"--json takes no value: write it alone"});
  expect_nothing_written({"simulate", "--beams", "many", "--out", path("out.ply")},
                         {"--beams many: choose 32 or 64"});
  expect_nothing_written(run_with({"--precision", "f8"}),
                         {"--precision f8: choose f32, tf32, f64, f16 or bf16"});
  expect_nothing_written(run_with({"--device", "gpu"}), {"--device \"gpu\": it is cpu, cuda"});
}

TEST_F(RefusalTest, NumbersOutOfReach) {
  for (const char* size : {"0", "-1", "nan"}) {
    expect_nothing_written({"info", scan_, "--voxel", size},
                           {"--voxel: the size along x = " + std::string(size)});
    expect_nothing_written(run_with({"--voxel", size}),
                           {"--voxel: the size along x = " + std::string(size)});
  }
  expect_nothing_written({"info", scan_, "--range", "-inf", "0", "0", "5", "5", "5"},
                         {"--range: the range along x = [-inf, 5), which is not finite"});
  expect_nothing_written({"info", scan_, "--range", "5", "0", "0", "-5", "5", "5"},
                         {"--range: the range along x = [5, -5), which is empty"});
  expect_nothing_written({"info", scan_, "--voxel", "0.1", "0.1"}, {"--voxel"});
  expect_nothing_written({"info", scan_, "--voxel", "1e-9"}, {"1e-09"});
  expect_nothing_written({"info", scan_, "--range", "5", "0", "0", "1", "1", "1"}, {"range"});
  expect_nothing_written({"info", scan_, "--range", "0", "0", "0", "1", "1"}, {"--range"});
  expect_nothing_written({"info", scan_, "--levels", "0"}, {"--levels"});
  for (const char* threads : {"-1", "1025"}) {
    expect_nothing_written(
        {"info", scan_, "--threads", threads},
        {"--threads " + std::string(threads) + ": ", "1 to 1024", "0 for all processors"});
  }
  expect_nothing_written({"simulate", "--seed", "18446744073709551616", "--out", path("out.ply")},
                         {"18446744073709551616"});
  expect_nothing_written(run_with({"--repeat", "0"}), {"--repeat"});
  expect_nothing_written({"run", "second", scan_, "--seed", "-1", "--out", path("out.safetensors")},
                         {"--seed"});
  expect_nothing_written({"run", "minkunet42", scan_, "--width-factor", "-1"},
                         {"--width-factor -1"});
  expect_nothing_written(run_with({"--widths", "huge"}), {"huge", "spvnas", "nine numbers"});
  expect_nothing_written(run_with({"--widths", "8,8,8,8,x,8,8,8,8"}), {"widths", "\"x\""});
  expect_nothing_written({"run", "minkunet42", scan_, "--width-factor", "1000"},
                         {"--width-factor 1000", "GiB"});
  for (const char* precision : {"f8", "i32"}) {
    const std::vector<std::string> named{"--precision", precision, "f32", "f64", "f16", "bf16"};
    expect_nothing_written(run_with({"--precision", precision}), named);
    expect_nothing_written({"bench", "layers", "--precision", precision}, named);
  }
  expect_nothing_written(run_with({"--precision", "tf32"}), {"--precision tf32", "--device cuda"});
  expect_nothing_written({"bench", "layers", "--precision", "tf32"}, {"--precision", "tf32"});
  expect_nothing_written(run_with({"--dataflow", "magic"}), {"magic"});
  expect_nothing_written(run_with({"--reduction", "median"}), {"median"});
  expect_nothing_written({"simulate", "--beams", "16", "--out", path("out.ply")},
                         {"--beams", "16"});
  expect_nothing_written({"simulate", "--sweeps", "0", "--out", path("out.ply")}, {"--sweeps 0: "});
  expect_nothing_written({"view", scan_, "--picture", path("out.png"), "--colour", "label"},
                         {"label"});
  expect_nothing_written({"view", scan_, "--picture", path("out.png"), "--size", "0", "100"},
                         {"--size: the picture's width = 0"});
  expect_nothing_written({"bench", "layers", "--repeat", "0"}, {"--repeat"});
  expect_nothing_written({"bench", "layers", "--levels", "0"}, {"--levels = 0"});
  expect_nothing_written({"bench", "layers", "--channels", "8", "0"}, {"--channels 0"});
  expect_nothing_written({"bench", "networks", "--network", "second", "resnet50", "--scan", scan_},
                         {"resnet50", "minkunet42"});
}

// With spaces or with commas, both ways are the same; and anything else is told the right one.
TEST_F(RefusalTest, ListsOfNumbers) {
  const auto info = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"info", scan_});
    return run_json(more);
  };
  EXPECT_EQ(info({"--voxel", "0.1,0.1,0.2"}), info({"--voxel", "0.1", "0.1", "0.2"}));
  EXPECT_EQ(info({"--range", "-1,-1,-3,6,1,1"}),
            info({"--range", "-1", "-1", "-3", "6", "1", "1"}));
  EXPECT_EQ(info({"--range", "-1,-1,-3", "6,1,1"}), info({"--range=-1,-1,-3,6,1,1"}));
  // A number without its zero, in any place, where CLI11 would take it for an option.
  EXPECT_EQ(info({"--range", "-1", "-2", "-.75", "6", "-.6,1"}),
            info({"--range", "-1", "-2", "-0.75", "6", "-0.6", "1"}));
  EXPECT_EQ(info({"--range", "-.5", "-2", "-.75", "6", "-.6", "-.25"}),
            info({"--range", "-0.5,-2,-0.75,6,-0.6,-0.25"}));
  // In front of a scan, which CLI11 would take for one more of them.
  EXPECT_EQ(run_json({"info", "--range", "-1", "-1", "-3", "6", "1", "1", scan_}),
            info({"--range", "-1,-1,-3,6,1,1"}));
  EXPECT_EQ(run_json({"info", "--voxel", "0.1", scan_}), info({"--voxel", "0.1"}));
  run_well({"run", "--voxel", "0.5", "second", scan_});
  run_well({"view", "--size", "400", "300", scan_, "--picture", path("v.png")});
  run_well({"view", scan_, "--picture", path("v.png"), "--size", "400,300"});
  run_well(
      {"bench", "layers", "--scan", scan_, "--channels", "4,8", "--levels", "1", "--repeat", "1"});
  const std::string form = "numbers with spaces or commas between them, as in ";
  for (const char* size : {"0.1;0.1;0.2", "0.1x0.1x0.2", "0.1m", "small"}) {
    expect_nothing_written(run_with({"--voxel", size}), {"--voxel", size, form + "--voxel 0.1"});
  }
  expect_nothing_written({"view", scan_, "--picture", path("out.png"), "--size", "400x300", "1"},
                         {"--size", "400x300", form + "--size 1600 900"});
  expect_nothing_written(
      {"conv", path("in.safetensors"), path("out.safetensors"), "--kernel", "3x3x1"},
      {"--kernel", "3x3x1", form + "--kernel 3 3 1"});
  expect_nothing_written({"info", scan_, "--range", "0,0,0,1,1"},
                         {"--range: 5 numbers given, and at least 6 needed", "spaces or commas"});
  expect_nothing_written({"info", scan_, "--voxel", "0.1,0.1,0.1,0.1"},
                         {"--voxel: 4 numbers given, and at most 3 needed", "spaces or commas"});
  expect_nothing_written({"info", scan_, "--voxel", "0.1,0.1"}, {"--voxel", "2 numbers given"});
}

TEST_F(RefusalTest, LabelFilesThatAreNotThere) {
  const std::string gone = path("gone.label");
  const std::string weights = "streets";
  expect_nothing_written({"view", scan_, "--picture", path("out.png"), "--labels", gone},
                         {"--labels " + gone, "no such file", "the .label file of " + scan_});
  expect_nothing_written({"run", "minkunet42", scan_, "--weights", weights, "--labels", gone},
                         {"--labels " + gone, "no such file", "the .label file of " + scan_});
  write_points(path("second.ply"), slope(2, 2));
  write_text(path("slope.label"), std::string(600 * 4, '\0'));
  const std::vector<std::string> both{"run",       "minkunet42", scan_,      path("second.ply"),
                                      "--weights", weights,      "--labels", path("slope.label")};
  expect_nothing_written(both, {"1 file for 2 scans", path("second.ply") + " has none"});
  std::vector<std::string> three = both;
  three.insert(three.end(), {gone, path("other.label")});
  expect_nothing_written(three, {"3 files for 2 scans", path("other.label") + " is of no scan"});
}

TEST_F(RefusalTest, ScansWithoutVoxelsToCopy) {
  write_points(path("empty.ply"), {});
  expect_nothing_written({"bench", "scaling", "--scan", path("empty.ply")},
                         {"bench scaling", "0 points", "empty.ply", "--range"});
  expect_nothing_written(
      {"bench", "scaling", "--scan", scan_, "--range", "50", "50", "0", "60", "60", "1"},
      {"bench scaling", "600 points", "slope.ply", "--range"});
}

TEST_F(RefusalTest, ResultsThatWouldReplaceWhatIsRead) {
  const std::string before = read_text(scan_);
  expect_refusal({"run", "second", scan_, "--out", scan_}, {scan_, "read and written over"});
  expect_refusal({"run", "second", scan_, "--picture", scan_}, {scan_, "read and written over"});
  expect_refusal({"voxelize", scan_, "--out", folder_.string() + "/./slope.ply"}, {"slope.ply"});
  expect_refusal({"view", scan_, "--picture", scan_}, {scan_});
  expect_refusal({"conv", scan_, scan_}, {scan_});
  EXPECT_EQ(read_text(scan_), before);
  expect_nothing_written(
      {"run", "second", scan_, "--out", path("out.png"), "--picture", path("out.png")},
      {"out.png", "written twice"});
  // Refused before the work: the first result must not appear when the second cannot.
  expect_nothing_written({"run", "second", scan_, "--out", path("out.safetensors"), "--picture",
                          path("no/folder/out.png")},
                         {"no/folder/out.png"});
}

TEST_F(RefusalTest, OptionsThatWouldDoNothing) {
  expect_nothing_written({"run", "second", scan_, "--widths", "driving"}, {"--widths", "second"});
  expect_nothing_written({"run", "second", scan_, "--width-factor", "2"}, {"--width-factor"});
  expect_nothing_written({"run", "second", scan_, "--widths", "spvnas"}, {"--widths", "second"});
  expect_nothing_written(run_with({"--weights", scan_, "--seed", "3"}),
                         {"--seed = 3", "--weights", "leave one out"});
  expect_nothing_written({"info", scan_, "--reduction", "max"}, {"--reduction"});
  write_text(path("slope.label"), std::string(600 * 4, '\0'));
  for (const char* colour : {"height", "intensity"}) {
    expect_nothing_written({"view", scan_, "--picture", path("out.png"), "--labels",
                            path("slope.label"), "--colour", colour},
                           {"--labels", "--colour", colour});
  }
  const std::vector<std::tuple<const char*, const char*, const char*>> idle{
      {"layers", "--network", "second"}, {"scaling", "--network", "second"},
      {"networks", "--channels", "8"},   {"scaling", "--channels", "8"},
      {"networks", "--levels", "2"},     {"scaling", "--levels", "2"},
      {"scaling", "--precision", "f16"}};
  for (const auto& [what, option, value] : idle) {
    expect_nothing_written({"bench", what, option, value, "--csv", path("out.csv")},
                           {option, what, "leave it out"});
  }
  expect_nothing_written({"bench", "layers", "--layout", "f32x9", "--csv", path("out.csv")},
                         {"--layout", "--scan", "leave it out"});
}

TEST_F(RefusalTest, TextsThatAreEmpty) {
  expect_nothing_written({"run", "second", scan_, "--out", ""}, {"--out", "empty"});
  expect_nothing_written({"run", "second", scan_, "--picture", ""}, {"--picture", "empty"});
  expect_nothing_written({"run", "second", scan_, "--weights", ""}, {"--weights", "empty"});
  expect_nothing_written({"run", "second", scan_, "--dataflow", ""}, {"--dataflow", "empty"});
  expect_nothing_written({"run", "second", ""}, {"SCAN", "empty"});
  expect_nothing_written({"simulate", "--out", ""}, {"--out", "empty"});
  expect_nothing_written({"voxelize", scan_, "--out", ""}, {"--out", "empty"});
  expect_nothing_written({"view", scan_, "--picture", ""}, {"--picture", "empty"});
  expect_nothing_written({"bench", "layers", "--csv", ""}, {"--csv", "empty"});
  expect_nothing_written({"info", scan_, "--layout", ""}, {"--layout", "empty"});
}

// Every command and every option that names a file to be written; no ending, NumPy's, and that of
// another of our formats.
TEST_F(RefusalTest, EveryResultHasTheEndingOfItsFormat) {
  const std::string tensors = path("in.safetensors");
  write_text(tensors, "");
  struct Written {
    std::vector<std::string> command;   // the path goes behind
    std::string named;
    std::string ending;
  };
  const std::vector<Written> all{{{"voxelize", scan_, "--out"}, "--out", ".safetensors"},
                                 {{"run", "second", scan_, "--out"}, "--out", ".safetensors"},
                                 {{"run", "minkunet42", scan_, "--classes"}, "--classes", ".label"},
                                 {{"run", "second", scan_, "--picture"}, "--picture", ".png"},
                                 {{"run", "second", scan_, "--html"}, "--html", ".html"},
                                 {{"view", scan_, "--picture"}, "--picture", ".png"},
                                 {{"view", scan_, "--html"}, "--html", ".html"},
                                 {{"conv", tensors}, "OUT", ".safetensors"},
                                 {{"simulate", "--out"}, "--out", ".ply"},
                                 {{"bench", "layers", "--csv"}, "--csv", ".csv"},
                                 {{"kernels", "build", "--out"}, "--out", ".bundle"}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Written& written = all[i];
    const auto* other = &all[(i + 1) % all.size()];
    while (other->ending == written.ending)
      other = other == &all.back() ? all.data() : other + 1;
    for (const std::string& ending : {std::string(), std::string(".npz"), other->ending}) {
      std::vector<std::string> arguments = written.command;
      arguments.push_back(path("out" + ending));
      expect_nothing_written(
          arguments, {written.named + ' ' + path("out" + ending), "written as", written.ending});
      EXPECT_FALSE(std::filesystem::exists(path("out" + ending)));
    }
  }
}

TEST_F(RefusalTest, FilesWithTheEndingOfAnotherKind) {
  expect_nothing_written({"simulate", "--out", path("out.bin")}, {"out.bin", ".ply"});
  expect_nothing_written({"view", scan_, "--picture", path("out.jpg")},
                         {"--picture", "out.jpg", ".png"});
  expect_nothing_written({"view", scan_, "--picture", path("out")}, {"--picture", ".png"});
  expect_nothing_written({"run", "second", scan_, "--picture", path("out.jpg")},
                         {"--picture", "out.jpg", ".png"});
}

// One of everything: `run` of the base class looks at the words.
TEST_F(RefusalTest, OneIsNoPlural) {
  write_points(path("one.ply"), {{0.01f, 0.01f, 0.01f, 1}});
  run_well({"info", path("one.ply"), "--threads", "1"});
  run_well({"voxelize", path("one.ply"), "--out", path("one.safetensors")});
  run_well({"view", path("one.ply"), "--picture", path("one.png"), "--html", path("one.html")});
  EXPECT_NE(read_text(path("one.html")).find("<p id=\"summary\">1 point</p>"), std::string::npos);
  const Outcome one = run_well({"run", "minkunet42", path("one.ply"), "--width-factor", "0.1",
                                "--threads", "1", "--out", path("o.safetensors")});
  EXPECT_NE(one.out.find("1 point -> 1 voxel in"), std::string::npos) << one.out;
  std::filesystem::create_directory(path("folder"));
  std::filesystem::copy_file(path("one.ply"), path("folder/one.ply"));
  std::filesystem::copy_file(path("one.ply"), path("folder/one.txt"));
  const Outcome folder = run_well({"run", "minkunet42", path("folder"), "--width-factor", "0.1"});
  EXPECT_NE(folder.out.find("\n1 scan: 1 point -> 1 voxel;"), std::string::npos) << folder.out;
  EXPECT_NE(folder.out.find("1 file (one.txt)"), std::string::npos) << folder.out;
}

TEST_F(RefusalTest, CommandsNobodyKnows) {
  expect_refusal({"kernels", "bogus"}, {"\"bogus\" of kernels", "list, build, check"});
  expect_refusal({"kernels"}, {"no command of kernels", "list, build, check"});
  expect_refusal({"kernels", "--json"}, {"--json", "list, build, check"});
  expect_refusal({"convert", "net.pth"}, {"convert", "Python package"});
}

TEST_F(RefusalTest, ChannelsThatNoLayerHas) {
  for (const char* channels : {"0", "65537", "99999999999"}) {
    expect_refusal({"bench", "layers", "--channels", channels}, {"--channels", channels, "65536"});
  }
  for (const char* channels : {"0x4", "4x0", "4x65537", "4", "4x", "x4", "4x4x4"}) {
    expect_refusal({"kernels", "list", "--channels", channels},
                   {"--channels", channels, "1 to 65536", "32x64"});
  }
}

TEST_F(RefusalTest, KernelsOfNetworksBesideNothing) {
  expect_nothing_written({"kernels", "build", "--common", "--out", path("out.bundle")},
                         {"--common", "--channels", "leave it out"});
}

TEST_F(RefusalTest, DoublePrecisionOnADevice) {
  expect_nothing_written(
      run_with({"--device", "cuda", "--precision", "f64"}),
      {"--precision f64 runs on the CPU alone: cuda:0 takes f32, f16 and bf16; add --device cpu"});
}

TEST_F(RefusalTest, SwitchesThatAreNeitherOnNorOff) {
  for (const char* value : {"banana", "2", "yes", " 1"}) {
    ASSERT_EQ(setenv("PUMICE_SYNC", value, 1), 0);
    expect_nothing_written(run_with({}), {"PUMICE_SYNC", value, "0 or 1"});
  }
  for (const char* value : {"0", "1", ""}) {
    ASSERT_EQ(setenv("PUMICE_SYNC", value, 1), 0);
    run_well({"info", scan_});
  }
  unsetenv("PUMICE_SYNC");
}

TEST_F(RefusalTest, DependentLaunchesThatAreNeitherOnNorOff) {
  for (const char* value : {"1", "once", "On"}) {
    ASSERT_EQ(setenv("PUMICE_DEPENDENT_LAUNCH", value, 1), 0);
    expect_nothing_written(run_with({}), {"PUMICE_DEPENDENT_LAUNCH", value, "on or off"});
  }
  for (const char* value : {"off", "on", ""}) {
    ASSERT_EQ(setenv("PUMICE_DEPENDENT_LAUNCH", value, 1), 0);
    run_well({"info", scan_});
  }
  unsetenv("PUMICE_DEPENDENT_LAUNCH");
}

TEST_F(RefusalTest, DevicesThatAreNotThere) {
  ASSERT_EQ(setenv("PUMICE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1), 0);
  expect_nothing_written(run_with({"--device", "cuda"}),
                         {"CUDA is not available", "/nowhere/libcuda.so.1",
                          "install NVIDIA's driver, or compute on the CPU"});
  unsetenv("PUMICE_CUDA_DRIVER");
}

TEST_F(RefusalTest, NetworksNobodyKnows) {
  expect_nothing_written({"run", "resnet50", scan_, "--out", path("out.safetensors")},
                         {"resnet50", "minkunet42", "centerpoint", "second"});
}

TEST_F(RefusalTest, FilesThatAreNotThere) {
  expect_nothing_written({"info", path("gone.ply")}, {"gone.ply"});
  expect_nothing_written(run_with({"--weights", path("gone.safetensors")}), {"gone.safetensors"});
  expect_nothing_written(
      {"run", "minkunet42", scan_, path("gone.bin"), "--out", path("out.safetensors")},
      {"gone.bin"});
  expect_nothing_written({"conv", path("gone.safetensors"), path("out.safetensors")},
                         {"gone.safetensors"});
  expect_nothing_written({"info", folder_.string()}, {folder_.string()});
}

TEST_F(RefusalTest, FoldersThatCannotBeWrittenTo) {
  const std::string nowhere = path("no/such/folder/out.ply");
  expect_nothing_written({"simulate", "--beams", "32", "--out", nowhere}, {nowhere});
  expect_nothing_written({"voxelize", scan_, "--out", nowhere}, {nowhere});
  expect_nothing_written({"view", scan_, "--picture", nowhere}, {nowhere});
}

TEST_F(RefusalTest, PlacesThatNoFileCanTake) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& place : {pipe, std::string("/dev/null")}) {
    // Before the scan is read, which is not there.
    expect_refusal({"voxelize", path("gone.ply"), "--out", place}, {place});
    expect_refusal({"conv", path("gone.safetensors"), place}, {place});
    expect_refusal({"run", "second", path("gone.ply"), "--out", place}, {place});
    expect_refusal({"bench", "layers", "--scan", path("gone.ply"), "--csv", place}, {place});
  }
  for (const char* stream : {"/dev/stdout", "/dev/stderr"}) {
    expect_refusal({"voxelize", path("gone.ply"), "--out", stream}, {stream});
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(RefusalTest, ScansThatEndEarly) {
  const std::string whole = read_text(scan_);
  write_text(path("half.ply"), whole.substr(0, whole.size() / 2));
  expect_nothing_written({"info", path("half.ply")}, {"half.ply"});
  write_text(path("header.ply"), whole.substr(0, 40));
  expect_nothing_written({"info", path("header.ply")}, {"header.ply"});
  write_text(path("odd.bin"), std::string(16 * 10 + 3, '\0'));
  expect_nothing_written({"info", path("odd.bin")}, {"odd.bin", "163", "f32x4"});
  write_text(path("short.npy"), "\x93NUMPY");
  expect_nothing_written({"info", path("short.npy")}, {"short.npy"});
  write_text(path("short.npz"), "PK\x03\x04");
  expect_nothing_written({"info", path("short.npz")}, {"short.npz"});
  write_text(path("short.pcd"), "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\n");
  expect_nothing_written({"info", path("short.pcd")}, {"short.pcd"});
}

TEST_F(RefusalTest, ScansInAnotherLayout) {
  // 64-bit x y z intensity, read as the 32-bit ones that .bin promises.
  std::string text;
  for (const Point& p : slope(20, 30)) {
    for (const float value : p) {
      const double wide = value;
      text.append(reinterpret_cast<const char*>(&wide), sizeof wide);
    }
  }
  write_text(path("wide.bin"), text);
  expect_nothing_written({"info", path("wide.bin")}, {"wide.bin", "f64x4"});
  EXPECT_EQ(run_json({"info", path("wide.bin"), "--layout", "f64x4"}).at("points"), 600);
  expect_nothing_written({"info", path("wide.bin"), "--layout", "f32x"}, {"f32x"});
  expect_nothing_written({"info", path("wide.bin"), "--layout", "f64x7"}, {"f64x7"});
  write_text(path("text.bin"), "these are words and no points at all");
  expect_nothing_written({"info", path("text.bin")}, {"text.bin"});
  write_text(path("scan.docx"), text);
  expect_nothing_written({"info", path("scan.docx")}, {"scan.docx"});
}

TEST_F(RefusalTest, PointsThatAreNowhere) {
  std::vector<Point> points = slope(20, 30);
  points[17][1] = std::numeric_limits<float>::quiet_NaN();
  std::string text;
  for (const Point& p : points)
    text.append(reinterpret_cast<const char*>(p.data()), sizeof p);
  write_text(path("nan.bin"), text);
  expect_nothing_written({"info", path("nan.bin")}, {"nan.bin", "17"});
  points[17][1] = std::numeric_limits<float>::infinity();
  write_points(path("infinite.ply"), points);
  expect_nothing_written({"info", path("infinite.ply")}, {"infinite.ply", "17"});
}

/// A safetensors file: 8 bytes of length, this header, these bytes.
std::string safetensors(const std::string& header, const std::string& data = {}) {
  const std::uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  return text + header + data;
}

TEST_F(RefusalTest, SafetensorsThatLie) {
  const std::string zeros(64, '\0');
  const std::vector<std::pair<const char*, std::string>> lies{
      {"empty", ""},
      {"shorter than a length", "abc"},
      {"header longer than the file", std::string("\xff\xff\xff\x00\x00\x00\x00\x00{}", 10)},
      {"header of 16 exabytes", std::string(8, '\xff') + "{}"},
      {"no JSON", safetensors("{\"coords\": ")},
      {"no object", safetensors("[1, 2, 3]")},
      {"unknown dtype",
       safetensors(R"({"coords":{"dtype":"Q9","shape":[4],"data_offsets":[0,16]}})", zeros)},
      {"size beside shape",
       safetensors(R"({"coords":{"dtype":"F32","shape":[5],"data_offsets":[0,16]}})",
                   zeros.substr(0, 16))},
      {"out of the file",
       safetensors(R"({"coords":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}})", zeros)},
      {"backwards",
       safetensors(R"({"coords":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})", zeros)},
      {"overlapping",
       safetensors(R"({"coords":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                   R"("features":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}})",
                   zeros.substr(0, 24))},
      {"a shape that overflows",
       safetensors(R"({"coords":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],)"
                   R"("data_offsets":[0,0]}})")},
      {"a negative shape",
       safetensors(R"({"coords":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", zeros)},
      {"nested beyond reason", safetensors(std::string(100'000, '[') + std::string(100'000, ']'))},
  };
  for (const auto& [what, bytes] : lies) {
    SCOPED_TRACE(what);
    write_text(path("lie.safetensors"), bytes);
    expect_nothing_written({"conv", path("lie.safetensors"), path("out.safetensors")},
                           {"lie.safetensors"});
    expect_nothing_written(run_with({"--weights", path("lie.safetensors")}), {"lie.safetensors"});
  }
}

/// Tensors of a sound submanifold convolution that a story spoils one at a time.
struct ConvTensors {
  Tensor coords = Tensor::from<std::int32_t>(std::vector<std::int32_t>{0, 0, 0, 1}, {2, 2});
  Tensor features = Tensor::full({2, 4}, DType::f32, 1);
  Tensor weight = Tensor::full({3, 4, 2}, DType::f32, 1);
  Tensor target_coords{};
  Tensor grad_output{};
  Tensor bias{};
};

TEST_F(RefusalTest, ConvolutionsThatDoNotFit) {
  const auto expect_refused = [&](const ConvTensors& tensors, std::vector<std::string> more,
                                  const std::vector<std::string>& named) {
    std::vector<NamedTensor> views{
        {"coords", tensors.coords}, {"features", tensors.features}, {"weight", tensors.weight}};
    if (tensors.target_coords.defined()) views.emplace_back("target_coords", tensors.target_coords);
    if (tensors.grad_output.defined()) views.emplace_back("grad_output", tensors.grad_output);
    if (tensors.bias.defined()) views.emplace_back("bias", tensors.bias);
    write_safetensors(path("in.safetensors"), views);
    more.insert(more.begin(), {"conv", path("in.safetensors"), path("out.safetensors")});
    expect_nothing_written(more, named);
  };
  const auto coords = [](std::vector<std::int32_t> values) {
    return Tensor::from<std::int32_t>(values, {static_cast<std::int64_t>(values.size()) / 2, 2});
  };
  expect_refused({}, {"--kernel", "5"}, {"weight has 3", "kernel has 5"});
  expect_refused({}, {"--kernel", "0"}, {"size[0] = 0"});
  expect_refused({}, {"--kernel", "3", "3"}, {"--kernel", "1 axis"});
  expect_refused({}, {"--stride", "2"}, {"stride"});
  expect_refused({}, {"--mode", "sideways"}, {"sideways"});
  expect_refused({}, {"--mode", "strided", "--stride", "0"}, {"stride"});
  expect_refused({}, {"--mode", "inverse"}, {"target_coords"});
  expect_refused({}, {"--mode", "transposed"}, {"target_coords"});
  expect_refused({}, {"--spatial-shape", "1"}, {"spatial_shape", "\"coords\""});
  expect_refused({.coords = coords({0, 7, 0, 7})}, {},
                 {"\"coords\"", "rows 0 and 1", "7", "drop one"});
  expect_refused({.coords = coords({-1, 0, 0, 1})}, {}, {"\"coords\"", "batch", "-1"});
  expect_refused({.coords = coords({0, 0})}, {}, {"features", "1 row of coords"});
  expect_refused({.coords = Tensor::full({2, 2}, DType::f32, 0)}, {}, {"coords", "int32"});
  expect_refused({.features = Tensor::full({2, 3}, DType::f32, 1)}, {},
                 {"weight takes 4", "features have 3"});
  expect_refused({.weight = Tensor::full({3, 4, 2}, DType::f64, 1)}, {}, {"weight", "f64"});
  expect_refused({.weight = Tensor::full({12, 2}, DType::f32, 1)}, {}, {"weight"});
  expect_refused({.grad_output = Tensor::full({2, 3}, DType::f32, 1)}, {}, {"grad_output"});
  expect_refused({.grad_output = Tensor::full({2, 2}, DType::f16, 1)}, {},
                 {"grad_output is f16", "features are f32"});
  expect_refused({.bias = Tensor::full({3}, DType::f32, 1)}, {}, {"bias is f32 [3]", "[2]"});
  expect_refused({.bias = Tensor::full({2}, DType::i64, 1)}, {}, {"bias is i64 [2]", "floating"});

  const ConvTensors targeted{.target_coords = coords({0, 0})};
  for (const char* mode : {"submanifold", "generative"}) {
    expect_refused(targeted, {"--mode", mode}, {mode, "\"target_coords\"", "leave it out"});
  }
  for (const char* mode : {"strided", "transposed", "inverse"}) {
    expect_refused(targeted, {"--mode", mode, "--spatial-shape", "4"},
                   {"--spatial-shape", "\"target_coords\"", "leave one"});
  }
  expect_refused(targeted, {"--mode", "strided", "--outputs", "cell"},
                 {"--outputs cell", "\"target_coords\"", "leave one"});
  expect_refused(targeted, {"--mode", "inverse", "--outputs", "dilating"},
                 {"--outputs dilating", "strided", "inverse"});
  expect_refused({}, {"--outputs", "cell"}, {"--outputs cell", "strided", "submanifold"});
  expect_refused({.target_coords = coords({0, 7, 0, 7})}, {"--mode", "inverse"},
                 {"\"target_coords\"", "rows 0 and 1", "drop one"});
  expect_refused({.target_coords = Tensor::full({2, 4}, DType::i32, 0)}, {"--mode", "inverse"},
                 {"in.safetensors", "target_coords is i32 [2, 4]", "coords [2, 2]"});
  expect_refused({.target_coords = Tensor::full({2, 2}, DType::f32, 0)}, {"--mode", "inverse"},
                 {"in.safetensors", "target_coords is f32 [2, 2]", "int32"});
}

}   // namespace
}   // namespace pumice::test
