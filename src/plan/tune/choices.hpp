// Which choices a group has.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <pumice/plan/tuner.hpp>

namespace pumice::tune {

/// UserError for what no group can be: no candidates, an index past the end, costs that are NaN.
void check_groups(const std::vector<Group>& groups);

/// Candidates of a decision, those predicted to cost least first; of equal ones the untuned first.
std::vector<std::size_t> by_prediction(const Decision& decision);

/// Of each decision the candidate that is predicted to cost least among those whose cut is in
/// `setting`; nothing where a decision has none.
std::optional<Choice> proposal_of(const Group& group, const Setting& setting);

/// The sum over the decisions; costs have to have one unit for it to mean something.
double predicted_cost(const Group& group, const Choice& choice);

/// Names of the candidates, with commas between them; of many that are equal, once.
std::string name_of(const Group& group, const Choice& choice);

/// How many choices there are, whether their cuts go together or not; `most` + 1 where more.
std::size_t count_choices(const Group& group, std::size_t most);
/// All whose cuts go together.
std::vector<Choice> all_choices(const Group& group);

}   // namespace pumice::tune
