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

/// Noise of the rows of a feature. The standard deviation of the noise of a row is Inspection::noise times the product
/// of the factors of its features.
struct FeatureNoiseFactor {
  std::string feature;        ///< name
  double factor = 1;          ///< posterior median
  double standard_error = 0;  ///< of the factor
};

/// Positions on one axis of an effect: the knots of a numeric column, then its missing values, or the levels of a
/// categorical column.
struct EffectAxis {
  std::string column;               ///< name
  std::vector<double> knots;        ///< in the units of the data; NaN for missing values and levels
  std::vector<std::string> labels;  ///< text of each position
};

/// Function of one column or of a pair of columns of an ANOVA model, in the units of the target (classes: log-odds). It
/// is piecewise linear between the knots.
struct Effect {
  std::vector<EffectAxis> axes;    ///< one or two
  double share = 0;                ///< of the sum of the variances of all functions over the training rows
  double spread = 0;               ///< standard deviation of the function over the training rows
  std::vector<double> values;      ///< at the positions; pairs: row-major, one row per position of the first axis
  std::vector<double> deviations;  ///< posterior standard deviations of `values`
};

/// Content of a model file in the units of the data.
struct Inspection {
  std::string model_path;        ///< the file
  Kind kind = Kind::gfm;         ///< of the model
  Task task = Task::regression;  ///< of the model
  std::string target;            ///< name of the target column
  std::string positive;          ///< classes: label of the positive class
  Index features = 0;            ///< number of features
  Index rank = 0;                ///< k
  double intercept = 0;          ///< in the units of the data
  std::vector<double> spectrum;  ///< eigen- or singular values of M, for scaled columns and target
  std::vector<Term> weights;     ///< linear terms by decreasing absolute effect
  std::vector<Term> pairs;       ///< second-order terms by decreasing absolute effect
  double pair_bound = 0;         ///< upper bound on the |effect| of each pair that is not listed
  bool are_pairs_exact = true;   ///< true: `pairs` are the strongest; false: the search was stopped
  std::vector<Effect> effects;   ///< ANOVA models: by decreasing share; weights and pairs are then empty
  Index effect_count = 0;        ///< ANOVA models: number of functions, including those not listed
  double noise = 0;              ///< ANOVA models and averages of samples: standard deviation of the noise; classes: 0
  /// Averages of samples, regression: features by decreasing |log factor| in standard errors.
  std::vector<FeatureNoiseFactor> noise_factors{};
  std::vector<Term> signal;                     ///< phase: entries of a, up to its sign, by decreasing absolute value
  std::map<std::string, std::string> training;  ///< settings and results of the training run
  std::string checksum;                         ///< of the model file, verified; empty: files of version 1 have none
  std::vector<std::string> warnings{};          ///< for the user
  /// More than two classes: models of each class against the others, whose `positive` is the class. Other fields
  /// except `model_path`, `kind`, `task`, `target`, `checksum` and `warnings` are then empty.
  std::vector<Inspection> classes{};
  double temperature = 1;  ///< more than two classes: factor on the log-odds before the softmax
};

/// Reads a model file and lists the `top` strongest linear and second-order terms. Pairs are found by branch and bound;
/// the d x d matrix M is not formed.
///
/// \throws DataError if the file is not a model, std::runtime_error if it cannot be read
Inspection inspect(const std::string& model_path, Index top);

/// Writes the terms as CSV with the columns term, left, right, coefficient, effect. ANOVA models: the curves and
/// surfaces with the columns term, left, left_value, right, right_value, value, standard_error, share. More than two
/// classes: a first column, class, contains the label.
/// \throws std::invalid_argument if `path` is the path of the model, std::runtime_error if it cannot be written
void export_terms(const Inspection& inspection, const std::string& path);

}  // namespace dyad
