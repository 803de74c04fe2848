// Plans of sparse products as JSON.
#include <pumice/plan/sparse_plan.hpp>

#include <array>

#include "plan/plan_fields.hpp"

namespace pumice {
namespace {

constexpr std::array kFormats{SparseFormat::csr, SparseFormat::ell, SparseFormat::hyb};

struct TeamField {
  const char* name;
  std::int32_t TeamSchedule::*number;
};
constexpr TeamField kTeamFields[] = {
    {"team", &TeamSchedule::team},
    {"chunks", &TeamSchedule::chunks},
    {"ahead", &TeamSchedule::ahead},
    {"units", &TeamSchedule::units},
    {"part_teams", &TeamSchedule::part_teams},
    {"ways", &TeamSchedule::ways},
};

}   // namespace

std::string to_text(const SparsePlan& plan) {
  PlanJson object{{"format", name_of(plan.format)}};
  if (plan.format == SparseFormat::hyb) object["column_parts"] = plan.column_parts;
  if (plan.width > 0) object["width"] = plan.width;
  if (plan.ranges) object["ranges"] = {{"work", plan.ranges->work}, {"ahead", plan.ranges->ahead}};
  if (plan.teams) {
    for (const TeamField& field : kTeamFields) {
      const std::int32_t number = (*plan.teams).*field.number;
      if (field.number != &TeamSchedule::ways || number != 0) object["teams"][field.name] = number;
    }
  }
  return object.dump();
}

SparsePlan parse_sparse_plan(std::string_view text) {
  const PlanJson object = PlanJson::parse(text, nullptr, false);
  if (object.is_discarded()) refuse_plan(text, "it is no JSON");
  SparsePlan plan;
  PlanFields fields(text, object);
  if (!object.contains("format")) refuse_plan(text, "it names no format");
  fields.read("format", plan.format, kFormats, [](SparseFormat one) { return name_of(one); });
  fields.read("column_parts", plan.column_parts, 1);
  fields.read("width", plan.width, 0);
  if (const PlanJson ranges = fields.take("ranges"); !ranges.is_null()) {
    PlanFields of_ranges(text, ranges, "ranges");
    plan.ranges.emplace();
    of_ranges.read("work", plan.ranges->work);
    of_ranges.read("ahead", plan.ranges->ahead);
    of_ranges.end();
  }
  if (const PlanJson teams = fields.take("teams"); !teams.is_null()) {
    PlanFields of_teams(text, teams, "teams");
    plan.teams.emplace();
    for (const TeamField& field : kTeamFields)
      of_teams.read(field.name, (*plan.teams).*field.number);
    of_teams.end();
  }
  fields.end();
  plan.reason = "given";
  return plan;
}

}   // namespace pumice
