#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace dyad {

/// Parses text that a stranger may have written. Discarded where it is no JSON, is nested deeper than any model is, or
/// would take more than about 16 times its size as values in memory.
nlohmann::json bounded_json(std::string_view text);

}  // namespace dyad
