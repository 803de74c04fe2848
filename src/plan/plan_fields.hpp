// Reads plans out of JSON: fields by name, and what is left over.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <pumice/core/error.hpp>

#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace pumice {

using PlanJson = nlohmann::ordered_json;

[[noreturn]] inline void refuse_plan(std::string_view text, const std::string& why) {
  constexpr std::size_t kShown = 200;   // characters of a text that is no plan
  detail::raise_user("plan \"", printable(text, kShown), "\": ", why,
                     "; give the text of a plan, as explain() and plan files have it");
}

/// Reads fields by name, and knows which of them nobody asked for.
class PlanFields {
 public:
  /// `name`: what an error calls the object.
  PlanFields(std::string_view text, const PlanJson& object, const std::string& name = "it")
      : text_(text), left_(object) {
    if (!left_.is_object()) refuse_plan(text_, name + " is no JSON object");
  }

  template <class Value> void read(const char* name, Value& value) {
    const auto found = left_.find(name);
    if (found == left_.end()) return;
    const bool fits =
        std::is_same_v<Value, bool> ? found->is_boolean() : found->is_number_integer();
    if (!fits) refuse_plan(text_, std::string(name) + " is of another type");
    if constexpr (std::is_same_v<Value, bool>) {
      value = found->template get<bool>();
    } else {
      const auto number = found->template get<std::int64_t>();
      const bool wraps = found->is_number_unsigned() &&
                         !std::in_range<std::int64_t>(found->template get<std::uint64_t>());
      if (wraps || !std::in_range<Value>(number))
        refuse_plan(text_, std::string(name) + " = " + found->dump() + " is out of range");
      value = static_cast<Value>(number);
    }
    left_.erase(found);
  }

  /// The same of a number that is at least `least`.
  template <class Value> void read(const char* name, Value& value, std::int64_t least) {
    read(name, value);
    if (value < least)
      refuse_plan(text_, std::string(name) + " = " + std::to_string(value) + " is less than " +
                             std::to_string(least));
  }

  /// One of `choices` by its name.
  template <class Value, std::size_t kCount, class NameOf>
  void read(const char* name, Value& value, const std::array<Value, kCount>& choices,
            NameOf&& name_of_choice) {
    const auto found = left_.find(name);
    if (found == left_.end()) return;
    for (const Value choice : choices) {
      if (!found->is_string() || found->template get<std::string>() != name_of_choice(choice))
        continue;
      value = choice;
      left_.erase(found);
      return;
    }
    refuse_plan(text_, std::string(name) + " has a value that is not known");
  }

  /// The object `name`, or null.
  PlanJson take(const char* name) {
    const auto found = left_.find(name);
    if (found == left_.end()) return nullptr;
    PlanJson value = std::move(*found);
    left_.erase(found);
    return value;
  }

  void end() const {
    if (!left_.empty())
      refuse_plan(text_, "\"" + printable(left_.begin().key()) + "\" is no part of a plan");
  }

 private:
  std::string_view text_;
  PlanJson left_;
};

}   // namespace pumice
