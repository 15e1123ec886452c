#pragma once

#include <string>
#include <vector>

namespace dyad::cli {

/// Returns "; did you mean rank?" if `text` is similar to one of `candidates` (a prefix of it, or within an edit
/// distance of a third of its length), else an empty string.
std::string did_you_mean(const std::string& text, const std::vector<std::string>& candidates);

}  // namespace dyad::cli
