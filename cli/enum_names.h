#pragma once

#include <dyad/dataset.h>
#include <dyad/recover.h>
#include <dyad/train.h>
#include <dyad/types.h>

#include "command.h"

namespace dyad::cli {

/// Names of enumeration values in options and JSON output that several subcommands share.
inline const Choices<Kind> kinds{
    {"gfm", Kind::gfm}, {"sensing", Kind::sensing}, {"phase", Kind::phase}, {"bilinear", Kind::bilinear}};
inline const Choices<Diagonal> diagonals{{"tied", Diagonal::tied}, {"zero", Diagonal::zero}, {"free", Diagonal::free}};
inline const Choices<Format> formats{
    {"libsvm", Format::libsvm}, {"csv", Format::csv}, {"tsv", Format::tsv}, {"npy", Format::npy}};
inline const Choices<Outcome> outcomes{{"converged", Outcome::converged},
                                       {"budget", Outcome::budget},
                                       {"diverged", Outcome::diverged},
                                       {"interrupted", Outcome::interrupted}};
inline const Choices<FitStatus> fit_statuses(fit_status_names.begin(), fit_status_names.end());
inline const Choices<OrderRemedy> order_remedies(order_remedy_names.begin(), order_remedy_names.end());

/// The choices and "auto", which leaves the value empty.
template <typename Value>
Choices<std::optional<Value>> choices_with_auto(const Choices<Value>& choices) {
  Choices<std::optional<Value>> all{{"auto", std::nullopt}};
  all.insert(all.end(), choices.begin(), choices.end());
  return all;
}

/// The choices for an optional variable.
template <typename Value>
Choices<std::optional<Value>> optional_choices(const Choices<Value>& choices) {
  return {choices.begin(), choices.end()};
}

}  // namespace dyad::cli
