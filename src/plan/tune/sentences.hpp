// What reports say, and how they change when something is taken back.
#pragma once

#include <string>

#include <pumice/plan/tuner.hpp>

namespace pumice::tune {

/// "0.812 times the time (0.790 to 0.830 with a confidence of 99.7 %, 20 pairs)"
std::string words_of(const Estimate& ratio);
/// "12.3 ms"
std::string words_of_seconds(double seconds);

/// Why something was not measured: the time was up, or the caller cancelled.
std::string reason_of(Stop stop);

/// What was accepted in this group was not kept after all.
void take_back(GroupReport& report, Verdict verdict, const std::string& reason);

/// Sets what each decision has, from the choice, and gives every candidate without a sentence one.
void finish_decisions(GroupReport& report, const Choice& choice, const std::string& not_measured);

}   // namespace pumice::tune
