#pragma once

#include <string>

namespace dyad::trials {

/// Rows [first, last) of generated ratings of movies by users, as libsvm or as csv with a header. Row i is the same for
/// every range, so that a file can be split into ranges.
std::string rating_rows(bool is_csv, int first, int last);

}  // namespace dyad::trials
