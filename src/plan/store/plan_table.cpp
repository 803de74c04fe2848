// An entry a line, so that differences of two tables can be read.
#include "plan/store/plan_table.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <span>
#include <system_error>

#include <nlohmann/json.hpp>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>

#include "core/file.hpp"
#include "core/printable.hpp"
#include "plan/store/plan_rules.hpp"

#include <fmt/format.h>

namespace pumice::tune {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "pumice plans";
constexpr int kSchema = 1;
constexpr int kDeepest = 4;   // table > plans > plan > value, and no further

Json json_of(const StoredPlan& plan) {
  const PlanKey& key = plan.key;
  const PlanRecord& record = plan.record;
  Json json{{"device", key.device},
            {"version", key.version},
            {"operation", key.operation},
            {"direction", key.direction},
            {"problem", key.problem},
            {"rows_bucket", key.rows_bucket},
            {"density_bucket", nullptr},
            {"plan", record.plan},
            {"tuned_s", record.tuned_s},
            {"untuned_s", record.untuned_s},
            {"confidence", record.confidence},
            {"samples", record.samples},
            {"measured", utc_text(record.measured_ms)}};
  if (key.density_bucket) json["density_bucket"] = *key.density_bucket;
  return json;
}

/// `digits` of `text` from `at` on; -1 where other letters stand there.
int number_at(const std::string& text, std::size_t at, std::size_t digits) {
  int number = 0;
  const char* begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + digits, number);
  const bool is_number = error == std::errc() && end == begin + digits && *begin != '-';
  return is_number ? number : -1;
}

/// The inverse of utc_text; -1 for other text.
std::int64_t ms_of(const std::string& text) {
  using namespace std::chrono;
  constexpr std::string_view kPattern = "0000-00-00T00:00:00.000Z";
  if (text.size() != kPattern.size()) return -1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kPattern[i] != '0' && text[i] != kPattern[i]) return -1;
  }
  const int hour = number_at(text, 11, 2);
  const int minute = number_at(text, 14, 2);
  const int second = number_at(text, 17, 2);
  const int ms = number_at(text, 20, 3);
  const int year_number = number_at(text, 0, 4);
  const int month_number = number_at(text, 5, 2);
  const int day_number = number_at(text, 8, 2);
  if (std::min({hour, minute, second, ms, year_number, month_number, day_number}) < 0) return -1;
  const year_month_day date{year(year_number), month(static_cast<unsigned>(month_number)),
                            day(static_cast<unsigned>(day_number))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return -1;
  const auto time =
      sys_days(date) + hours(hour) + minutes(minute) + seconds(second) + milliseconds(ms);
  return duration_cast<milliseconds>(time.time_since_epoch()).count();
}

/// Takes fields of one entry, and says which one is missing or of another type.
class Entry {
 public:
  Entry(const Json& json, const std::string& name) : json_(json), name_(name) {
    PUMICE_EXPECTS(json_.is_object(), name_, " is not a JSON object");
  }

  std::string text(const char* field) const {
    const Json& value = at(field);
    PUMICE_EXPECTS(value.is_string(), name_, ": ", field, " is not a text");
    return value.get<std::string>();
  }
  double number(const char* field) const {
    const Json& value = at(field);
    PUMICE_EXPECTS(value.is_number(), name_, ": ", field, " is not a number");
    return value.get<double>();
  }
  std::int64_t whole(const char* field) const {
    const Json& value = at(field);
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<std::uint64_t>() <= kMost);
    PUMICE_EXPECTS(fits, name_, ": ", field, " is not a whole number");
    return value.get<std::int64_t>();
  }
  int bucket(const char* field) const {
    // Far outside of what a bucket may be, for the check of the whole.
    return static_cast<int>(std::clamp<std::int64_t>(whole(field), -1'000'000, 1'000'000));
  }
  bool is_null(const char* field) const { return at(field).is_null(); }

 private:
  const Json& at(const char* field) const {
    const auto found = json_.find(field);
    PUMICE_EXPECTS(found != json_.end(), name_, ": ", field, " is missing");
    return *found;
  }

  const Json& json_;
  const std::string& name_;
};

StoredPlan plan_of(const Json& json, const std::string& name) {
  const Entry entry(json, name);
  StoredPlan plan;
  plan.key = {.device = entry.text("device"),
              .version = entry.text("version"),
              .operation = entry.text("operation"),
              .direction = entry.text("direction"),
              .problem = entry.text("problem"),
              .rows_bucket = entry.bucket("rows_bucket")};
  if (!entry.is_null("density_bucket")) plan.key.density_bucket = entry.bucket("density_bucket");
  plan.record = {.plan = entry.text("plan"),
                 .tuned_s = entry.number("tuned_s"),
                 .untuned_s = entry.number("untuned_s"),
                 .confidence = entry.number("confidence"),
                 .samples = entry.whole("samples"),
                 .measured_ms = ms_of(entry.text("measured"))};
  PUMICE_EXPECTS(plan.record.measured_ms >= 0, name, ": measured = \"",
                 printable(entry.text("measured")),
                 "\": it is a time such as 2025-11-24T13:46:25.123Z");
  for (const std::string& problem : {problem_of(plan.key), problem_of(plan.record)})
    PUMICE_EXPECTS(problem.empty(), name, ": ", problem);
  return plan;
}

Json parsed(const std::filesystem::path& file, const std::string& name) {
  const Buffer<std::byte> bytes = detail::read_file(file);
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  // What is nested deeper is no table, and would cost memory for every level.
  const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; };
  Json json = Json::parse(begin, begin + bytes.size(), is_shallow, /*allow_exceptions=*/false);
  PUMICE_EXPECTS(
      !json.is_discarded() && json.is_object() && json.value("format", Json()) == kFormat, name,
      ": it is no table of plans, whose JSON begins with \"format\": \"", kFormat, "\"");
  PUMICE_EXPECTS(json.value("schema", Json()) == kSchema, name,
                 ": its schema is not the one this version of Pumice knows, ", kSchema,
                 "; export it again with this version");
  PUMICE_EXPECTS(json.contains("plans") && json["plans"].is_array(), name,
                 ": its \"plans\" are no list");
  return json;
}

}   // namespace

std::string utc_text(std::int64_t unix_ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds(unix_ms)};
  const auto days_only = floor<days>(time);
  const year_month_day date(days_only);
  const hh_mm_ss clock(time - days_only);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

void write_plan_table(const std::filesystem::path& file, const std::vector<StoredPlan>& plans) {
  std::string text =
      fmt::format("{{\"format\": \"{}\", \"schema\": {}, \"plans\": [", kFormat, kSchema);
  for (std::size_t i = 0; i < plans.size(); ++i)
    text += (i == 0 ? "\n" : ",\n") + json_of(plans[i]).dump();
  text += "\n]}\n";
  AtomicFile written(file);
  written.write(std::as_bytes(std::span(text)));
  written.commit();
}

std::vector<StoredPlan> read_plan_table(const std::filesystem::path& file) {
  const std::string name = printable_path(file);
  const Json json = parsed(file, name);
  std::vector<StoredPlan> plans;
  for (const Json& entry : json["plans"])
    plans.push_back(plan_of(entry, fmt::format("{}: plan {}", name, plans.size() + 1)));
  return plans;
}

}   // namespace pumice::tune
