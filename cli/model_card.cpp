// The metadata of weights, taken at its word only where it makes sense.
#include "model_card.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include <pumice/core/error.hpp>
#include <pumice/core/safetensors.hpp>

#include "core/installed.hpp"
#include "picture_colours.hpp"

namespace pumice::cli {
namespace {

constexpr std::string_view kFeatures = "x,y,z,intensity";
constexpr std::size_t kMostClasses = 4096;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class T> std::optional<T> parse(std::string_view text, auto... format) {
  T value{};
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), value, format...);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), entries_(SafetensorsFile::open(path).metadata()) {}

  ModelCard read() const {
    ModelCard card;
    if (const std::string* network = find("network")) card.network = *network;
    if (const std::string* features = find("features")) {
      require(*features == kFeatures, "features", "networks run on x,y,z,intensity");
    }
    if (const std::string* widths = find("widths")) card.widths = read_widths(*widths);
    if (const std::string* size = find("voxel_size")) card.voxel_size = read_size(*size);
    if (const std::string* classes = find("classes")) read_classes(*classes, card);
    return card;
  }

 private:
  const std::string* find(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }

  void require(bool holds, const char* key, std::string_view remedy) const {
    PUMICE_EXPECTS(holds, path_.string(), ": its metadata says ", key, " = \"", entries_.at(key),
                   "\"; ", remedy);
  }

  nn::MinkUNetWidths read_widths(const std::string& text) const {
    try {
      return nn::parse_widths(text);
    } catch (const UserError& error) {
      throw UserError(path_.string() + ": its metadata says " + error.what());
    }
  }

  std::array<double, 3> read_size(std::string_view text) const {
    constexpr const char* kRemedy = "it takes one positive number of metres, or three for x,y,z";
    const std::vector<std::string_view> parts = split(text, ',');
    require(parts.size() == 1 || parts.size() == 3, "voxel_size", kRemedy);
    std::array<double, 3> size{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto value = parse<double>(parts[parts.size() == 1 ? 0 : axis]);
      require(value && std::isfinite(*value) && *value > 0, "voxel_size", kRemedy);
      size[axis] = *value;
    }
    return size;
  }

  void read_classes(std::string_view text, ModelCard& card) const {
    const std::vector<std::string_view> names = split(text, ',');
    require(names.size() <= kMostClasses &&
                std::ranges::none_of(names, [](std::string_view name) { return name.empty(); }),
            "classes", "it takes 1 to 4096 names with commas between them, none of them empty");
    if (const std::string* labels = find("labels")) read_labels(*labels, names.size(), card);
    for (std::size_t i = 0; i < names.size(); ++i) {
      // Without colours, those of the labels that a class stands for.
      const bool labelled = !card.labels.empty() && !card.labels[i].empty();
      card.classes.push_back(
          {std::string(names[i]), labelled ? label_colour(card.labels[i].front())
                                           : class_colour(static_cast<std::int32_t>(i))});
    }
    if (const std::string* colours = find("colours")) read_colours(*colours, card);
  }

  void read_labels(std::string_view text, std::size_t classes, ModelCard& card) const {
    constexpr const char* kRemedy =
        "it takes the whole numbers of each class, spaces within a class and commas between "
        "classes, each number once";
    const std::vector<std::string_view> groups = split(text, ',');
    require(groups.size() == classes, "labels", kRemedy);
    std::set<std::int32_t> seen;
    for (const std::string_view group : groups) {
      std::vector<std::int32_t>& numbers = card.labels.emplace_back();
      if (group.empty()) continue;   // a class that no label stands for
      for (const std::string_view word : split(group, ' ')) {
        const auto number = parse<std::int32_t>(word);
        require(number && *number >= 0 && seen.insert(*number).second, "labels", kRemedy);
        numbers.push_back(*number);
      }
    }
  }

  void read_colours(std::string_view text, ModelCard& card) const {
    constexpr const char* kRemedy = "it takes one colour a class as in #5fa8ff, with commas";
    const std::vector<std::string_view> codes = split(text, ',');
    require(codes.size() == card.classes.size(), "colours", kRemedy);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::string_view code = codes[i];
      require(code.size() == 7 && code[0] == '#', "colours", kRemedy);
      const auto value = parse<std::uint32_t>(code.substr(1), 16);
      require(value.has_value(), "colours", kRemedy);
      const auto part = [&](int shift) {
        return static_cast<float>((*value >> shift) & 255u) / 255.0f;
      };
      card.classes[i].colour = {part(16), part(8), part(0)};
    }
  }

  std::filesystem::path path_;
  std::map<std::string, std::string> entries_;
};

}   // namespace

std::string find_weights(const std::string& given) {
  std::error_code nothing;
  const bool is_name = given.find_first_of("./\\") == std::string::npos;
  const auto is_file = [&](const std::filesystem::path& path) {
    return std::filesystem::exists(path, nothing) && !std::filesystem::is_directory(path, nothing);
  };
  if (given.empty() || !is_name || is_file(given)) return given;
  for (const std::filesystem::path& place : installed_places("models")) {
    const std::filesystem::path file = place / (given + ".safetensors");
    if (is_file(file)) return file.string();
  }
  throw UserError(
      "--weights " + given +
      ": there is no such file, and no weights of that name come along; \"streets\" do, "
      "where Pumice is installed whole");
}

ModelCard read_model_card(const std::filesystem::path& weights) {
  return Reader(weights).read();
}

}   // namespace pumice::cli
