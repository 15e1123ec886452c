#pragma once

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include <dyad/rows.h>

#include "fuzz.h"
#include "io/parse_number.h"

namespace dyad::fuzz {

/// Checks that the text has one line per row with a finite prediction and, if `has_deviations`, a finite nonnegative
/// standard deviation.
inline void require_finite_predictions(const std::string& text, Index rows, bool has_deviations) {
  std::istringstream lines(text);
  std::string line;
  Index count = 0;
  while (std::getline(lines, line)) {
    ++count;
    const std::size_t comma = line.find(',');
    require((comma != std::string::npos) == has_deviations,
            "a line has a deviation if and only if deviations are requested");
    double value = 0;
    require(parse_number(std::string_view(line).substr(0, comma), value) && std::isfinite(value),
            "a prediction is a finite number");
    if (!has_deviations) continue;
    require(parse_number(std::string_view(line).substr(comma + 1), value) && std::isfinite(value) && value >= 0,
            "a deviation is a finite nonnegative number");
  }
  require(count == rows, "there is one line per row");
}

}  // namespace dyad::fuzz
