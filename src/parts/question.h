#pragma once

#include <cstdint>
#include <vector>

#include "base/archive.h"
#include "newton/row_sums.h"

namespace dyad {

/// The head of what a driver asks; behind it comes what it is about: a filter, parameters, a direction.
struct Question {
  enum class About {
    survey,      ///< which features there are, how large, and where the targets lie
    pass,        ///< what a filter learns from the rows
    targets,     ///< RowLooks, each of them
    products,    ///<
    diagonal,    ///<
    slopes,      ///< with the losses of held-out rows
    bends,       ///<
    precisions,  ///< what the rows leave open around a fit
  };
  /// What becomes of rows that are held out.
  enum class HeldOut { counts, is_left_out, counts_alone };

  About about = About::survey;
  HeldOut held_out = HeldOut::counts;
  double from = 0;        ///< the rows whose hashes are in this share of all hashes
  double to = 1;          ///<
  double held_from = 1;   ///< rows below this share are never held out
  bool has_range = true;  ///< unless the rows have broken it
  bool squares = false;   ///< products and diagonal: of squares, too

  void archive(Archive& archive);

  [[nodiscard]] bool is_held_out(std::uint64_t hash) const;
  [[nodiscard]] bool counts(std::uint64_t hash) const;
};

/// Parameters of this shape, and a direction.
void archive_parameters(Archive& archive, SignedFactors<double>& parameters, Index dim, Index rank);
void archive_direction(Archive& archive, Direction<double>& t, Index dim, Index rank, Diagonal diagonal);

/// In place: x_j / scale_j. Empty: they are all 1.
using Scales = std::vector<double>;

}  // namespace dyad
