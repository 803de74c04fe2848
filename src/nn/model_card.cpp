// The metadata of weights, and what their tensors say where it does not.
#include <pumice/nn/model_card.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>

#include <pumice/core/error.hpp>

#include "core/installed.hpp"
#include "core/printable.hpp"

namespace pumice::nn {
namespace {

constexpr std::string_view kFeatures = "x,y,z,intensity";
constexpr std::size_t kMostClasses = 4096;
constexpr std::size_t kQuoted = 160;   // characters of an entry: 20 colours
constexpr std::string_view kRelational = "rgcn";
constexpr std::int64_t kMostNodes = 2'147'483'647;
constexpr std::int64_t kMostRelations = 65'535;
constexpr std::size_t kMostLayers = 256;
constexpr std::int64_t kMostChannels = std::int64_t{1} << 20;   // as of MinkUNet42

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
  Reader(const std::map<std::string, std::string>& entries, std::string_view file)
      : entries_(entries), file_(file) {}

  ModelCard read() const {
    ModelCard card;
    if (const std::string* network = find("network")) card.network = *network;
    const bool is_relational = card.network == kRelational;
    // Of nodes without features it is their number.
    card.in_channels = read_count("in_channels", is_relational ? kMostNodes : kMostChannels);
    card.outputs = read_count("outputs");
    if (const std::string* features = find("features")) {
      require(*features == kFeatures, "features", "networks run on x,y,z,intensity");
    }
    if (is_relational) {
      card.relational = read_relational(card);
    } else if (const std::string* widths = find("widths")) {
      card.widths = read_widths(*widths);
    }
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
    PUMICE_EXPECTS(holds, file_, ": its metadata says ", key, " = \"",
                   printable(entries_.at(key), kQuoted), "\"; ", remedy);
  }

  std::optional<std::int64_t> read_count(const char* key, std::int64_t most = kMostChannels) const {
    const std::string* text = find(key);
    if (text == nullptr) return std::nullopt;
    const auto count = parse<std::int64_t>(*text);
    require(count && *count >= 1 && *count <= most, key,
            "it takes a whole number from 1 to " + std::to_string(most));
    return count;
  }

  /// Of an entry that a network cannot do without.
  std::string_view needed(const char* key) const {
    const std::string* text = find(key);
    PUMICE_EXPECTS(text != nullptr, file_, ": its metadata says network = \"", kRelational,
                   "\" and not its ", key, "; write it with pumice.save_weights");
    return *text;
  }

  RelationalCard read_relational(ModelCard& card) const {
    (void)needed("in_channels");
    (void)needed("relations");
    RelationalCard relational;
    relational.widths = read_layer_widths(needed("widths"));
    relational.relations = *read_count("relations", kMostRelations);
    relational.bases = read_count("bases");
    relational.blocks = read_count("blocks");
    require(!relational.bases || !relational.blocks, "blocks", "it takes bases or blocks");
    const auto layers = read_count("layers");
    require(!layers || *layers == static_cast<std::int64_t>(relational.widths.size()), "layers",
            "it takes one width for each");
    require(!card.outputs || *card.outputs == relational.widths.back(), "outputs",
            "it takes the last of its widths");
    card.outputs = relational.widths.back();
    if (const std::string* activation = find("activation"))
      require(*activation == "relu", "activation", "there is relu between layers");
    if (const std::string* aggr = find("aggr")) {
      require(*aggr == "mean" || *aggr == "sum" || *aggr == "max", "aggr",
              "it takes mean, sum or max");
      relational.reduction = *aggr == "mean"  ? EntryReduction::mean
                             : *aggr == "sum" ? EntryReduction::sum
                                              : EntryReduction::max;
    }
    return relational;
  }

  std::vector<std::int64_t> read_layer_widths(std::string_view text) const {
    const std::vector<std::string_view> parts = split(text, ',');
    std::vector<std::int64_t> widths;
    for (const std::string_view part : parts) {
      const auto width = parse<std::int64_t>(part);
      require(parts.size() <= kMostLayers && width && *width >= 1 && *width <= kMostChannels,
              "widths", "it takes 1 to 256 whole numbers from 1 to 1048576, one for each layer");
      widths.push_back(*width);
    }
    return widths;
  }

  MinkUNetWidths read_widths(const std::string& text) const {
    try {
      return parse_widths(text);
    } catch (const UserError& error) {
      throw UserError(
          printable_message(std::string(file_) + ": its metadata says " + error.what()));
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
    const auto count = static_cast<std::int64_t>(names.size());
    if (card.outputs) {
      require(count == *card.outputs, "classes",
              "it takes one name for each of its " + std::to_string(*card.outputs) + " outputs");
    }
    card.outputs = count;
    card.classes.assign(names.begin(), names.end());
    if (const std::string* labels = find("labels")) read_labels(*labels, card);
    if (const std::string* colours = find("colours")) read_colours(*colours, card);
  }

  void read_labels(std::string_view text, ModelCard& card) const {
    constexpr const char* kRemedy =
        "it takes the whole numbers of each class, spaces within a class and commas between "
        "classes, each number once";
    const std::vector<std::string_view> groups = split(text, ',');
    require(groups.size() == card.classes.size(), "labels", kRemedy);
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
    for (const std::string_view code : codes) {
      require(code.size() == 7 && code[0] == '#', "colours", kRemedy);
      const auto value = parse<std::uint32_t>(code.substr(1), 16);
      require(value.has_value(), "colours", kRemedy);
      const auto part = [&](int shift) {
        return static_cast<std::uint8_t>(*value >> shift & 255u);
      };
      card.colours.push_back({part(16), part(8), part(0)});
    }
  }

  const std::map<std::string, std::string>& entries_;
  std::string_view file_;
};

/// The factors that make `wanted` of `preset`, from the least up to but without the other.
std::pair<double, double> factors_between(const MinkUNetWidths& preset,
                                          const MinkUNetWidths& wanted) {
  double low = 0;
  double high = static_cast<double>(kMostChannels);
  for (std::size_t i = 0; i < preset.size(); ++i) {
    const auto width = static_cast<double>(preset[i]);
    const auto made = static_cast<double>(wanted[i]);
    if (wanted[i] > 1) low = std::max(low, (made - 0.5) / width);   // 1 comes of any small factor
    high = std::min(high, (made + 0.5) / width);
  }
  return {low, high};
}

/// The factor with the fewest decimals; nothing where none makes `wanted` of `preset`.
std::optional<std::string> factor_for(const MinkUNetWidths& preset, const MinkUNetWidths& wanted) {
  const auto [low, high] = factors_between(preset, wanted);
  double power = 1;
  for (int decimals = 0; decimals <= 6; ++decimals, power *= 10) {
    const double factor = std::max(std::ceil(low * power), 1.0) / power;
    if (factor >= high || scaled_widths(preset, factor) != wanted) continue;
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), factor).ptr;
    return std::string(text.data(), end);
  }
  return std::nullopt;
}

}   // namespace

ModelCard read_model_card(const std::map<std::string, std::string>& metadata,
                          std::string_view file) {
  return Reader(metadata, file).read();
}

ModelCard read_model_card(const SafetensorsFile& file) {
  ModelCard card = read_model_card(file.metadata(), file.name());
  constexpr const char* kClassifier = "classifier.0.weight";
  if (!card.outputs && file.contains(kClassifier) && file.shape(kClassifier).rank() == 2)
    card.outputs = file.shape(kClassifier)[0];
  return card;
}

std::string find_weights(const std::string& given) {
  std::error_code nothing;
  const bool is_name = given.find_first_of("./\\") == std::string::npos;
  const auto is_file = [&](const std::filesystem::path& path) {
    return std::filesystem::exists(path, nothing) && !std::filesystem::is_directory(path, nothing);
  };
  if (given.empty() || !is_name || is_file(given)) return given;
  constexpr const char* kEnding = ".safetensors";
  std::set<std::string> installed;
  for (const std::filesystem::path& place : installed_places("models")) {
    const std::filesystem::path file = place / (given + kEnding);
    if (is_file(file)) return file.string();
    for (std::filesystem::directory_iterator entry(place, nothing), end; !nothing && entry != end;
         entry.increment(nothing)) {
      if (entry->path().extension() == kEnding)
        installed.insert(printable(entry->path().stem().string()));
    }
  }
  std::string names;
  for (const std::string& name : installed)
    names += (names.empty() ? "" : ", ") + name;
  throw UserError(
      "weights \"" + printable(given) +
      "\": there is no such file, and no installed weights have that name (installed: " +
      (names.empty() ? "none" : names) + "); give the path of a safetensors file");
}

std::optional<MinkUNetWidths> widths_in(const SafetensorsFile& file) {
  if (file.contains("point_transforms.0.0.weight")) return std::nullopt;   // SPVCNN
  MinkUNetWidths widths{};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string layer = i == 0  ? "stem.0"
                              : i < 5 ? "stage" + std::to_string(i) + ".2.net.0"
                                      : "up" + std::to_string(i - 4) + ".1.1.net.0";
    if (!file.contains(layer + ".weight")) return std::nullopt;
    const Shape& shape = file.shape(layer + ".weight");
    if (shape.rank() != 3 || shape[2] < 1 || shape[2] > kMostChannels) return std::nullopt;
    widths[i] = shape[2];
  }
  return widths;
}

std::string options_for(const MinkUNetWidths& widths) {
  struct Preset {
    const char* option;
    const MinkUNetWidths& widths;
  };
  const Preset presets[] = {{"", kSpvnasWidths}, {"--widths driving", kDrivingWidths}};
  for (const Preset& preset : presets) {
    const auto factor = factor_for(preset.widths, widths);
    if (!factor) continue;
    std::string options = preset.option;
    if (*factor == "1") return options.empty() ? "--widths spvnas" : options;
    options.append(options.empty() ? "" : " ").append("--width-factor ").append(*factor);
    return options;
  }
  std::string text = "--widths ";
  for (const std::int64_t width : widths)
    text.append(text.ends_with(' ') ? "" : ",").append(std::to_string(width));
  return text;
}

}   // namespace pumice::nn
