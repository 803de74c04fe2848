// Nothing is built but the entries: values are taken as the parser meets them, so that neither deep
// nesting nor many entries cost more than their bytes.
#include "core/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/tensor.hpp>

#include "core/printable.hpp"

namespace pumice::detail {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 4;   // header > tensor > shape > number
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kQuoted = 60;   // characters of a value in a message
constexpr const char* kNoObject =
    "its header is not a JSON object; it is not a safetensors file or is damaged";

constexpr std::array kTypes{StoredType{"F64", 8},  StoredType{"F32", 4}, StoredType{"F16", 2},
                            StoredType{"BF16", 2}, StoredType{"I64", 8}, StoredType{"I32", 4},
                            StoredType{"I16", 2},  StoredType{"I8", 1},  StoredType{"U8", 1},
                            StoredType{"BOOL", 1}};

std::string in_quotes(std::string_view text) {
  return concatenate('"', printable(text, kQuoted), '"');
}

/// A list of numbers, as far as it makes sense.
struct Numbers {
  bool are_counts = true;   // whole numbers from 0 to 2^63 - 1
  std::size_t count = 0;
  std::vector<std::int64_t> values;   // the first few
  std::string text;                   // as JSON, for messages

  void add(std::string_view shown) {
    if (text.size() <= kQuoted) text.append(count == 0 ? "" : ",").append(shown);
    ++count;
  }
  std::string in_brackets() const { return concatenate("[", printable(text, kQuoted), "]"); }
};

/// What one tensor's object holds.
struct RawEntry {
  std::string type;
  Numbers shape;
  Numbers offsets;
};

/// Receives the parser's events. After the first trouble it only watches how deep the rest goes: a
/// header that is nested too deeply, or is no JSON, is said to be that.
class Events final : public nlohmann::json_sax<Json> {
 public:
  explicit Events(SafetensorsHeader& header) : header_(header) {}

  /// In one sentence, without the file's name; empty when all is well.
  const std::string& trouble() const { return trouble_; }
  bool is_too_deep() const { return is_too_deep_; }

  bool null() override { return value("null"); }
  bool boolean(bool value_) override { return value(value_ ? "true" : "false"); }
  bool number_integer(number_integer_t number) override { return value(std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) override {
    constexpr auto kMost = static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    const bool is_count = list_ != nullptr && depth_ == 3 && number <= kMost;
    if (!is_count || !trouble_.empty()) return value(std::to_string(number));
    list_->add(std::to_string(number));
    if (list_->values.size() < static_cast<std::size_t>(Shape::kMaxRank))
      list_->values.push_back(static_cast<std::int64_t>(number));
    return true;
  }
  bool number_float(number_float_t, const string_t& text) override { return value(text); }
  bool binary(binary_t&) override { return value("binary"); }   // JSON has none

  bool string(string_t& text) override {
    if (!trouble_.empty()) return true;
    if (depth_ == 2 && in_metadata_) {
      header_.metadata[key_] = std::move(text);
      return true;
    }
    if (depth_ == 2 && key_ == "dtype") {
      entry_.type = std::move(text);
      return true;
    }
    return value(in_quotes(text));
  }

  bool start_object(std::size_t) override {
    if (!enter()) return false;
    if (!trouble_.empty()) return true;
    if (depth_ == 2) {
      in_metadata_ = tensor_ == kMetadata;
      entry_ = {};
      keys_.clear();
    } else if (depth_ > 2) {
      if (list_ != nullptr) list_->add("{…}");
      misplaced("{…}");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (!trouble_.empty()) return true;
    if (depth_ == 1) {
      tensor_ = std::move(text);
      key_.clear();
      in_metadata_ = false;
      const bool is_new = tensor_ == kMetadata ? !std::exchange(has_metadata_, true)
                                               : header_.entries.try_emplace(tensor_).second;
      return expect(is_new, [&] { return "its header names " + in_quotes(tensor_) + kTwice; });
    }
    key_ = std::move(text);
    const bool is_new = in_metadata_ ? !header_.metadata.contains(key_) : keys_.insert(key_).second;
    expect(is_new, [&] { return "its header names " + in_quotes(key_) + kTwice; });
    const bool is_known =
        in_metadata_ || key_ == "dtype" || key_ == "shape" || key_ == "data_offsets";
    return expect(is_known, [&] { return needs_exactly(); });
  }

  bool end_object() override {
    --depth_;
    if (trouble_.empty() && depth_ == 1 && !in_metadata_) finish_entry();
    return true;
  }

  bool start_array(std::size_t) override {
    if (!enter()) return false;
    if (!trouble_.empty()) return true;
    const bool is_list = depth_ == 3 && !in_metadata_ && key_ != "dtype";
    if (is_list) {
      list_ = key_ == "shape" ? &entry_.shape : &entry_.offsets;
    } else if (list_ != nullptr) {
      list_->are_counts = false;
      list_->add("[…]");
    } else {
      misplaced("[…]");
    }
    return true;
  }

  bool end_array() override {
    if (--depth_ < 3) list_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  static constexpr const char* kTwice = " twice; it is damaged";

  std::string needs_exactly() const {
    return "tensor " + in_quotes(tensor_) + " needs exactly dtype, shape and data_offsets";
  }

  /// Always true, so that the parser goes on.
  template <class Text> bool expect(bool holds, const Text& text) {
    if (!holds && trouble_.empty()) trouble_ = text();
    return true;
  }

  bool enter() {
    is_too_deep_ = ++depth_ > kDeepest;
    return !is_too_deep_;
  }

  /// A number, a text or another value that is no count of a list.
  bool value(std::string_view shown) {
    if (!trouble_.empty()) return true;
    if (list_ != nullptr) {
      list_->are_counts = false;
      list_->add(shown);
      return true;
    }
    misplaced(shown);
    return true;
  }

  /// A value where the format has another one.
  void misplaced(std::string_view shown) {
    const std::string who = "tensor " + in_quotes(tensor_);
    if (tensor_ == kMetadata) {
      trouble_ = in_metadata_ ? "__metadata__ " + in_quotes(key_) + " is not a text"
                              : "its __metadata__ is not an object";
    } else if (key_ == "dtype") {
      trouble_ = unknown_type(std::string(shown));
    } else if (key_ == "shape") {
      trouble_ = list_ == nullptr ? "shape of " + who + " is not a list" : odd_extents();
    } else if (key_ == "data_offsets") {
      trouble_ = odd_offsets();
    } else {
      trouble_ = needs_exactly();
    }
  }

  std::string unknown_type(const std::string& type) const {
    return "tensor " + in_quotes(tensor_) + " has dtype " + in_quotes(type) + "; known are " +
           stored_type_names();
  }
  std::string odd_extents() const {
    return "shape of tensor " + in_quotes(tensor_) + " is \"" + entry_.shape.in_brackets() +
           "\"; extents are whole numbers from 0";
  }
  std::string odd_offsets() const {
    return "data_offsets of tensor " + in_quotes(tensor_) + " are not two ascending whole numbers";
  }

  void finish_entry() {
    if (keys_.size() != 3) {
      trouble_ = needs_exactly();
      return;
    }
    const std::optional<StoredType> type = find_stored_type(entry_.type);
    const Numbers& shape = entry_.shape;
    const Numbers& offsets = entry_.offsets;
    constexpr auto kMostAxes = static_cast<std::size_t>(Shape::kMaxRank);
    expect(type.has_value(), [&] { return unknown_type(entry_.type); });
    expect(shape.are_counts, [&] { return odd_extents(); });
    expect(shape.count <= kMostAxes, [&] {
      return "tensor " + in_quotes(tensor_) + " has " + std::to_string(shape.count) +
             " axes; at most " + std::to_string(kMostAxes) + " are known";
    });
    expect(offsets.are_counts && offsets.count == 2 && offsets.values[0] <= offsets.values[1],
           [&] { return odd_offsets(); });
    if (!trouble_.empty()) return;
    header_.entries[tensor_] = {*type, shape.values, offsets.values[0], offsets.values[1]};
  }

  SafetensorsHeader& header_;
  std::string trouble_;
  bool is_too_deep_ = false;
  int depth_ = 0;   // of the object or list that is open
  bool has_metadata_ = false;
  bool in_metadata_ = false;
  std::string tensor_;   // the key in the header
  std::string key_;      // the key in the tensor or in the metadata
  std::set<std::string> keys_;
  RawEntry entry_;
  Numbers* list_ = nullptr;   // the list of numbers that is open
};

}   // namespace

std::optional<StoredType> find_stored_type(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name, &StoredType::name);
  return found == kTypes.end() ? std::nullopt : std::optional(*found);
}

std::string stored_type_names() {
  std::string names;
  for (const StoredType& type : kTypes) {
    const bool is_last = &type == &kTypes.back();
    names += (names.empty() ? "" : is_last ? " and " : ", ") + std::string(type.name);
  }
  return names;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& name) {
  // The format has the object begin at once and only spaces follow it. The parser would pass over a
  // byte order mark, and take a zero byte for the end.
  PUMICE_EXPECTS(text.starts_with('{'), name, ": ", kNoObject);
  PUMICE_EXPECTS(text.find('\0') == std::string_view::npos, name,
                 ": its header holds a zero byte; it is damaged");
  SafetensorsHeader header;
  Events events(header);
  const bool is_json = Json::sax_parse(text, &events);
  PUMICE_EXPECTS(!events.is_too_deep(), name, ": its header is nested too deeply; it is damaged");
  PUMICE_EXPECTS(is_json, name, ": ", kNoObject);
  PUMICE_EXPECTS(events.trouble().empty(), name, ": ", events.trouble());
  return header;
}

}   // namespace pumice::detail
