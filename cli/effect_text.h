#pragma once

#include <string>

#include <dyad/inspect.h>
#include <nlohmann/json.hpp>

namespace dyad::cli {

/// Functions of an ANOVA model as text: a sparkline per column and a coarse grid per pair.
std::string effect_text(const Inspection& inspection);

/// Functions of an ANOVA model as JSON: columns, knots, values and standard errors.
nlohmann::ordered_json effect_json(const Inspection& inspection);

}  // namespace dyad::cli
