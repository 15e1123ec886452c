#pragma once

#include <dyad/data.h>
#include <dyad/recover.h>

#include "command.h"

namespace dyad::cli {

/// The words for choices that more than one verb has.
inline const Choices<Kind> kinds{
    {"gfm", Kind::gfm}, {"sensing", Kind::sensing}, {"phase", Kind::phase}, {"bilinear", Kind::bilinear}};
inline const Choices<Diagonal> diagonals{{"tied", Diagonal::tied}, {"zero", Diagonal::zero}, {"free", Diagonal::free}};
inline const Choices<Format> formats{
    {"libsvm", Format::libsvm}, {"csv", Format::csv}, {"tsv", Format::tsv}, {"npy", Format::npy}};
inline const Choices<Outcome> outcomes{{"converged", Outcome::converged},
                                       {"budget", Outcome::budget},
                                       {"diverged", Outcome::diverged},
                                       {"interrupted", Outcome::interrupted}};

/// The same words for what may be left to us.
template <typename Choice>
Choices<std::optional<Choice>> or_automatic(const Choices<Choice>& choices) {
  Choices<std::optional<Choice>> all{{"auto", std::nullopt}};
  all.insert(all.end(), choices.begin(), choices.end());
  return all;
}

template <typename Choice>
Choices<std::optional<Choice>> optional_choices(const Choices<Choice>& choices) {
  return {choices.begin(), choices.end()};
}

}  // namespace dyad::cli
