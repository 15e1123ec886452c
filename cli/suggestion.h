#pragma once

#include <string>
#include <vector>

namespace dyad::cli {

/// "; did you mean rank?" for a word that is nearly one of these, "" for one that is not.
std::string did_you_mean(const std::string& given, const std::vector<std::string>& words);

}  // namespace dyad::cli
