#pragma once

#include <string>
#include <vector>

#include <dyad/types.h>

namespace dyad {

/// Terms of the predictions of rows. The terms of a row add up to its prediction in the units of the target, or to its
/// log-odds for classes. Terms of scaled columns are relative to a row with the mean of each numeric column.
struct Explanation {
  /// What a term contains.
  enum class TermKind {
    intercept,          ///< the constant of the model
    column,             ///< function of one column; low-rank models: its linear terms
    square,             ///< low-rank models: square of a numeric column or feature
    pair,               ///< function of two columns
    posterior_average,  ///< average over the posterior minus the prediction of the stored parameters: unknown
                        ///< categories, and for classes the uncertainty of the log-odds
    limit,              ///< change by the limits of the predictions
  };
  /// Kind and columns of a term.
  struct TermName {
    TermKind kind = TermKind::intercept;  ///< what the term contains
    std::string left;                     ///< name of a column, or of a feature for hashed and sparse rows; empty: none
    std::string right;                    ///< pair: name of the second one
  };

  std::vector<TermName> terms;      ///< in the order of their numbers
  std::vector<Index> offsets{0};    ///< position of each row's first entry, then the number of entries
  std::vector<Index> indices;       ///< number of the term of each entry, at most one entry for each row and term
  std::vector<double> values;       ///< value of each entry
  std::vector<double> predictions;  ///< one per row
};

}  // namespace dyad
