// Safetensors: what is written comes back, and headers that lie are refused in a sentence.
#include <pumice/core/safetensors.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

using namespace test;

/// A file with this header and `data_bytes` bytes of zeros behind it.
std::string file_of(const std::string& header, std::size_t data_bytes = 0) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::from_bytes(std::as_bytes(std::span(bytes)), "w.safetensors");
}

std::string complaint(const std::string& header, std::size_t data_bytes = 0) {
  return message_of([&] { parse(file_of(header, data_bytes)); });
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, KeepEveryTypeAndShape) {
  const TemporaryFolder folder;
  for (const std::int64_t size : {0, 1, 31, 33, 65537}) {
    std::vector<Tensor> tensors;
    std::vector<NamedTensor> named;
    for (const DType dtype : {DType::u8, DType::f64, DType::f32, DType::f16, DType::bf16,
                              DType::i64, DType::i32, DType::i16}) {
      tensors.push_back(Tensor::full({size, 3}, dtype, 5.0));
      named.emplace_back("block.0." + std::string(name_of(dtype)), tensors.back());
    }
    write_safetensors(folder / "w.safetensors", named, {{"format", "pt"}, {"note", "naïve \"x\""}});
    const SafetensorsFile file = SafetensorsFile::open(folder / "w.safetensors");
    EXPECT_EQ(file.names().size(), 8u);
    EXPECT_EQ(file.metadata().at("note"), "naïve \"x\"");
    for (std::size_t i = 0; i < named.size(); ++i) {
      const Tensor back = file.get(named[i].first);
      ASSERT_EQ(back.shape(), tensors[i].shape());
      ASSERT_EQ(back.dtype(), tensors[i].dtype());
      ASSERT_EQ(file.shape(named[i].first), tensors[i].shape());
      if (size > 0) {
        EXPECT_EQ(std::memcmp(back.raw(), tensors[i].raw(), back.bytes()), 0);
      }
    }
  }
  EXPECT_EQ(folder.files(), 1) << "no temporary file may stay";
}

TEST(Safetensors, MayBeEmpty) {
  const TemporaryFolder folder;
  write_safetensors(folder / "w.safetensors", {});
  EXPECT_TRUE(SafetensorsFile::open(folder / "w.safetensors").names().empty());
  EXPECT_TRUE(parse(file_of("{}")).names().empty());
}

TEST(Safetensors, GiveASingleNumberAsOneElement) {
  const SafetensorsFile file = parse(file_of("{\"n\":" + tensor("I64", "[]", "[0,8]") + "}", 8));
  EXPECT_EQ(file.get("n").shape(), (Shape{1}));
  EXPECT_EQ(file.get("n").data<std::int64_t>()[0], 0);
}

TEST(Safetensors, AlignTheElementsWhateverTheNames) {
  const TemporaryFolder folder;
  const Tensor one = Tensor::zeros({1}, DType::f64);
  for (std::size_t length = 1; length < 9; ++length) {
    const std::vector<NamedTensor> named{{std::string(length, 'n'), one}};
    write_safetensors(folder / "w.safetensors", named);
    EXPECT_EQ(std::filesystem::file_size(folder / "w.safetensors") % 8, 0u);
    EXPECT_TRUE(SafetensorsFile::open(folder / "w.safetensors").contains(named[0].first));
  }
}

TEST(Safetensors, SayWhichTensorsThereAre) {
  const SafetensorsFile file = parse(file_of("{\"a\":" + tensor("F32", "[2]", "[0,8]") + "}", 8));
  EXPECT_EQ(message_of([&] { (void)file.get("b"); }),
            "w.safetensors: has no tensor \"b\"; it has \"a\"");
}

TEST(HostileSafetensors, WithBadLengthsAreRefused) {
  EXPECT_EQ(message_of([] { parse("1234567"); }),
            "w.safetensors: has 7 bytes, which is too short for a safetensors file");
  std::string bytes = file_of("{}");
  bytes[0] = 100;
  EXPECT_EQ(message_of([&] { parse(bytes); }),
            "w.safetensors: announces a header of 100 bytes, but only 2 follow; it is truncated");
  bytes[7] = '\x7f';
  EXPECT_EQ(message_of([&] { parse(bytes); }),
            "w.safetensors: announces a header of 9151314442816847972 bytes; at most 100000000 are "
            "read, so it is not a safetensors file");
}

TEST(HostileSafetensors, WithBadJsonAreRefused) {
  const std::string not_json =
      "w.safetensors: its header is not a JSON object; it is not a safetensors file or is damaged";
  for (const char* header : {"", "{", "[]", "{\"a\":}", "{}}", "null", "{'a':1}"}) {
    EXPECT_EQ(complaint(header), not_json) << header;
  }
  const std::string a = tensor("F32", "[1]", "[0,4]");
  EXPECT_EQ(complaint("{\"a\":" + a + ",\"a\":" + a + "}", 4),
            "w.safetensors: its header names \"a\" twice; it is damaged");
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","shape":[1],"shape":[2],"data_offsets":[0,4]}})", 4),
            "w.safetensors: its header names \"shape\" twice; it is damaged");
  EXPECT_EQ(complaint("{\"a\":" + std::string(50000, '[') + std::string(50000, ']') + "}"),
            "w.safetensors: its header is nested too deeply; it is damaged");
  EXPECT_EQ(complaint(R"({"__metadata__":{"a":1}})"),
            "w.safetensors: __metadata__ \"a\" is not a text");
}

TEST(HostileSafetensors, WithAnythingAroundTheirJsonAreRefused) {
  const std::string a = "{\"a\":" + tensor("F32", "[1]", "[0,4]") + "}";
  EXPECT_TRUE(parse(file_of(a + "     ", 4)).contains("a"));
  const std::string zero = "w.safetensors: its header holds a zero byte; it is damaged";
  EXPECT_EQ(complaint(a + std::string(5, '\0'), 4), zero);
  EXPECT_EQ(complaint(a + std::string("\0 {", 3), 4), zero);
  const std::string not_json =
      "w.safetensors: its header is not a JSON object; it is not a safetensors file or is damaged";
  EXPECT_EQ(complaint("\xef\xbb\xbf" + a, 4), not_json);   // a byte order mark
  EXPECT_EQ(complaint(" " + a, 4), not_json);
  EXPECT_EQ(complaint(a + "x", 4), not_json);
}

TEST(HostileSafetensors, SayWhereValuesAreOfAnotherKind) {
  EXPECT_EQ(complaint(R"({"a":5})"),
            "w.safetensors: tensor \"a\" needs exactly dtype, shape and data_offsets");
  EXPECT_EQ(complaint(R"({"a":[{"b":1}]})"),
            "w.safetensors: tensor \"a\" needs exactly dtype, shape and data_offsets");
  EXPECT_EQ(complaint(R"({"__metadata__":[]})"),
            "w.safetensors: its __metadata__ is not an object");
  EXPECT_EQ(complaint(R"({"__metadata__":{"a":{"b":"c"}}})"),
            "w.safetensors: __metadata__ \"a\" is not a text");
  EXPECT_EQ(complaint(R"({"__metadata__":{},"__metadata__":{}})"),
            "w.safetensors: its header names \"__metadata__\" twice; it is damaged");
  EXPECT_EQ(complaint(R"({"__metadata__":{"a":"1","a":"2"}})"),
            "w.safetensors: its header names \"a\" twice; it is damaged");
  const auto of = [](const std::string& dtype, const std::string& shape, const char* offsets) {
    return complaint("{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape +
                         ",\"data_offsets\":" + offsets + "}}",
                     4);
  };
  const std::string known = "; known are F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL";
  EXPECT_EQ(of("5", "[1]", "[0,4]"), "w.safetensors: tensor \"a\" has dtype \"5\"" + known);
  EXPECT_EQ(of(R"({"b":"F32"})", "[1]", "[0,4]"),
            "w.safetensors: tensor \"a\" has dtype \"{…}\"" + known);
  EXPECT_EQ(of(R"("F32")", "{}", "[0,4]"), "w.safetensors: shape of tensor \"a\" is not a list");
  EXPECT_EQ(of(R"("F32")", R"([1,"x",[2]])", "[0,4]"),
            "w.safetensors: shape of tensor \"a\" is \"[1,\"x\",[…],2]\"; extents are whole "
            "numbers from 0");
  EXPECT_EQ(of(R"("F32")", "[1]", R"({"from":0})"),
            "w.safetensors: data_offsets of tensor \"a\" are not two ascending whole numbers");
}

/// What a file says is quoted, but neither obeyed nor repeated at length.
TEST(HostileSafetensors, AreQuotedInOneShortLine) {
  const std::string evil = "\\u001b[31m\\n" + std::string(400000, 'e');
  const std::string good = tensor("F32", "[1]", "[0,4]");
  for (const std::string& header :
       {"{\"" + evil + "\":5}", "{\"" + evil + "\":" + good + ",\"" + evil + "\":" + good + "}",
        "{\"a\":" + tensor(evil, "[1]", "[0,4]") + "}", "{\"__metadata__\":{\"" + evil + "\":5}}",
        "{\"" + evil + "\":" + tensor("F32", "[2]", "[0,4]") + "}",
        "{\"a\":" + tensor("F32", "[\"" + evil + "\"]", "[0,4]") + "}"}) {
    const std::string message = complaint(header, 4);
    EXPECT_NE(message, "(nothing was thrown)");
    EXPECT_LT(message.size(), 400u) << message;
    EXPECT_EQ(message.find_first_of("\x1b\n"), std::string::npos) << message;
  }
}

/// The header is walked once: 200,000 tensors, 14 MB, take half a second, a few under sanitizers.
/// With work for each of them that grows with their number they would take ten minutes.
TEST(HostileSafetensors, WithManyTensorsTakeTimeInProportion) {
  std::string header = "{";
  for (int i = 0; i < 200000; ++i)
    header += "\"t" + std::to_string(i) + "\":" + tensor("F32", "[0]", "[0,0]") + ",";
  header.back() = '}';
  const std::clock_t begin = std::clock();
  EXPECT_EQ(parse(file_of(header)).names().size(), 200000u);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 30.0);
}

TEST(HostileSafetensors, ThatTorchSaveWroteSaySo) {
  const std::string said =
      "w.safetensors: is a file of torch.save, not a safetensors file; convert it with `pumice "
      "convert`, or read it in Python with torch.load and model.load_state_dict";
  const std::string zip("PK\x03\x04\x00\x00\x08\x08", 8);
  const std::string pickle("\x80\x02\x8a\x0al\xfc\x9c\x46", 8);
  for (const std::string& head : {zip, pickle})
    EXPECT_EQ(message_of([&] { parse(head + std::string(100, 'x')); }), said);
  // A header of 128 bytes begins like a pickle, and one of 19,280 like a zip archive.
  for (const std::size_t length : {128u, 19280u}) {
    std::string header = "{}";
    header.resize(length, ' ');
    EXPECT_TRUE(parse(file_of(header)).names().empty());
  }
}

TEST(Safetensors, HoldTypesThatPumiceHasNot) {
  const SafetensorsFile file = parse(file_of(
      "{\"b\":" + tensor("BOOL", "[3]", "[0,3]") + ",\"i\":" + tensor("I8", "[]", "[3,4]") + "}",
      4));
  EXPECT_EQ(file.stored("b").type, "BOOL");
  EXPECT_EQ(file.stored("i").shape, std::vector<std::int64_t>{});
  std::vector<std::byte> out(3, std::byte{7});
  file.read("b", out);
  EXPECT_EQ(out, std::vector<std::byte>(3));
  EXPECT_EQ(
      message_of([&] { (void)file.get("b"); }),
      "w.safetensors: tensor \"b\" is BOOL, which Pumice has not; convert it to a type of f64, "
      "f32, f16, bf16, i64, i32, i16 and u8");
}

TEST(HostileSafetensors, WithBadTensorsAreRefused) {
  const auto of = [](const std::string& dtype, const std::string& shape, const std::string& offsets,
                     std::size_t data = 8) {
    return complaint("{\"a\":" + tensor(dtype, shape, offsets) + "}", data);
  };
  EXPECT_EQ(complaint(R"({"a":{"dtype":"F32","shape":[1]}})"),
            "w.safetensors: tensor \"a\" needs exactly dtype, shape and data_offsets");
  EXPECT_EQ(of("F8_E4M3", "[8]", "[0,8]"),
            "w.safetensors: tensor \"a\" has dtype \"F8_E4M3\"; known are F64, F32, F16, BF16, "
            "I64, I32, I16, I8, U8 and BOOL");
  EXPECT_EQ(of("F32", "[2]", "[0,80]"),
            "w.safetensors: tensor \"a\" ends at byte 80 of 8; the file is truncated or damaged");
  EXPECT_EQ(of("F32", "[3]", "[0,8]"),
            "w.safetensors: tensor \"a\" of shape [3] F32 takes 12 bytes, but has 8");
  EXPECT_EQ(of("F32", "[-2]", "[0,8]"),
            "w.safetensors: shape of tensor \"a\" is \"[-2]\"; extents are whole numbers from 0");
  EXPECT_EQ(of("F32", "[2.0]", "[0,8]"),
            "w.safetensors: shape of tensor \"a\" is \"[2.0]\"; extents are whole numbers from 0");
  EXPECT_EQ(
      of("F32", "[4294967296,4294967296]", "[0,8]"),
      "w.safetensors: tensor \"a\" of shape [4294967296,4294967296] has more than 2^63 bytes");
  EXPECT_EQ(of("F32", "[1,1,1,1,1,1,2]", "[0,8]"),
            "w.safetensors: tensor \"a\" has 7 axes; at most 6 are known");
  for (const char* offsets :
       {"[8,0]", "[0]", "[-8,0]", "[0,18446744073709551615]", "[0,8,9]", "8"}) {
    EXPECT_EQ(of("F32", "[2]", offsets),
              "w.safetensors: data_offsets of tensor \"a\" are not two ascending whole numbers");
  }
}

TEST(HostileSafetensors, WithOverlapsAndHolesAreRefused) {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    return complaint(
        "{\"a\":" + tensor("F32", "[2]", a) + ",\"b\":" + tensor("F32", "[2]", b) + "}", data);
  };
  EXPECT_EQ(two("[0,8]", "[4,12]", 12),
            "w.safetensors: tensor \"b\" overlaps another one; the file is damaged");
  EXPECT_EQ(two("[0,8]", "[0,8]", 8),
            "w.safetensors: tensor \"b\" overlaps another one; the file is damaged");
  EXPECT_EQ(two("[0,8]", "[12,20]", 20),
            "w.safetensors: 4 bytes before tensor \"b\" belong to none; the file is damaged");
  EXPECT_EQ(two("[8,16]", "[0,8]", 17),
            "w.safetensors: 1 bytes at its end belong to no tensor; the file is damaged");
}

TEST(HostileSafetensors, CutShortAnywhereAreRefused) {
  const std::string whole = file_of("{\"a\":" + tensor("F32", "[2]", "[0,8]") + "}", 8);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(message_of([&] { parse(whole.substr(0, size)); }), "(nothing was thrown)") << size;
  }
}

TEST(WritingSafetensors, RefusesWhatCouldNotBeReadBack) {
  const TemporaryFolder folder;
  const Tensor one = Tensor::zeros({1}, DType::f32);
  const auto written = [&](const std::vector<NamedTensor>& named) {
    return message_of([&] { write_safetensors(folder / "w.safetensors", named); });
  };
  EXPECT_EQ(written({{"a", one}, {"a", one}}), "write_safetensors: two tensors are named \"a\"");
  EXPECT_EQ(written({{"__metadata__", one}}),
            "write_safetensors: a tensor may not be named __metadata__");
  EXPECT_EQ(written({{"a", ConstTensorView{}}}), "write_safetensors: tensor \"a\" is undefined");
  EXPECT_EQ(written({{"\xff", one}}), "write_safetensors: a name or metadata text is not UTF-8");
  EXPECT_EQ(folder.files(), 0);
}

TEST(WritingSafetensors, LeavesTheOldFileWhenItFails) {
  const TemporaryFolder folder;
  const Tensor one = Tensor::zeros({1}, DType::f32);
  const std::vector<NamedTensor> good{{"a", one}};
  write_safetensors(folder / "w.safetensors", good);
  const std::vector<NamedTensor> bad{{"a", one}, {"b", ConstTensorView{}}};
  EXPECT_THROW(write_safetensors(folder / "w.safetensors", bad), UserError);
  EXPECT_TRUE(SafetensorsFile::open(folder / "w.safetensors").contains("a"));
  EXPECT_EQ(folder.files(), 1);
}

}   // namespace
}   // namespace pumice
