#pragma once

#include <map>
#include <string>
#include <vector>

#include <dyad/shape.h>
#include <dyad/types.h>

namespace dyad {

/// Term of a model in the units of the data. The prediction (classes: the log-odds) is the intercept plus the sum of
/// coefficient * x_left * x_right, or coefficient * x_left if `right` is empty. Categories are indicators, 1 or 0.
struct Term {
  std::string left;        ///< name of a feature
  std::string right;       ///< empty: linear term; equal to `left`: square
  double coefficient = 0;  ///< in the units of the data
  double effect = 0;  ///< change of the prediction per standard deviation of a numeric feature (of the first rows),
                      ///< or by the presence of a category
};

/// Content of a model file in the units of the data.
struct Inspection {
  std::string model_path;                       ///< the file
  Kind kind = Kind::gfm;                        ///< of the model
  Task task = Task::regression;                 ///< of the model
  std::string target;                           ///< name of the target column
  std::string positive;                         ///< classes: label of the positive class
  Index features = 0;                           ///< number of features
  Index rank = 0;                               ///< k
  double intercept = 0;                         ///< in the units of the data
  std::vector<double> spectrum;                 ///< eigen- or singular values of M, for scaled columns and target
  std::vector<Term> weights;                    ///< linear terms by decreasing absolute effect
  std::vector<Term> pairs;                      ///< second-order terms by decreasing absolute effect
  double pair_bound = 0;                        ///< upper bound on the |effect| of each pair that is not listed
  bool are_pairs_exact = true;                  ///< true: `pairs` are the strongest; false: the search was stopped
  std::vector<Term> signal;                     ///< phase: entries of a, up to its sign, by decreasing absolute value
  std::map<std::string, std::string> training;  ///< settings and results of the training run
  std::string checksum;                         ///< of the model file, verified; empty: files of version 1 have none
  std::vector<std::string> warnings{};          ///< for the user
};

/// Reads a model file and lists the `top` strongest linear and second-order terms. Pairs are found by branch and bound;
/// the d x d matrix M is not formed.
///
/// \throws DataError if the file is not a model, std::runtime_error if it cannot be read
Inspection inspect(const std::string& model_path, Index top);

/// Writes the terms as CSV with the columns term, left, right, coefficient, effect.
/// \throws std::invalid_argument if `path` is the path of the model, std::runtime_error if it cannot be written
void export_terms(const Inspection& inspection, const std::string& path);

}  // namespace dyad
