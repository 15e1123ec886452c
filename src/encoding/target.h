#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/error.h>
#include <dyad/types.h>

#include "encoding/scaling.h"
#include "likelihood/likelihood.h"

namespace dyad {

/// Location of a cell, for messages. Does not own the file name.
struct InputLocation {
  const std::string& file;
  std::int64_t line = 0;    ///< from 1; 0: unknown
  std::int64_t column = 0;  ///< from 1; 0: unknown
};

/// A third class occurred where two were expected.
class ThirdClassError : public DataError {
 public:
  using DataError::DataError;
};

/// The target column and its encoding. Solvers use codes: a number that is centered and scaled by the first rows, or -1
/// and +1 for the two classes.
class Target {
 public:
  std::string name;  ///< column name; empty for layouts without column names
  Task task = Task::regression;
  Scaling scaling;                                         ///< regression: from targets to codes; never clips
  double clip_limit = std::numeric_limits<double>::max();  ///< training clips codes to [-clip_limit, clip_limit]
  /// Range of the targets in the user's units. A target at an end is censored: its latent value may lie beyond the end.
  /// Predictions are clipped to the range. The defaults mean that there is no end.
  double low = -std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::max();
  /// Smallest and largest training target in the user's units. `min_seen > max_seen` if no target has been seen.
  double min_seen = std::numeric_limits<double>::max();
  double max_seen = -std::numeric_limits<double>::max();
  /// True: the user set the range. False: the range is inferred from the first rows, and dropped if a target exceeds
  /// it.
  bool is_range_given = false;
  bool is_task_inferred = false;  ///< the user did not set the task; see is_task_provisional()
  std::string negative;           ///< label of the class -1; empty: not seen yet
  std::string positive;           ///< label of the class +1; empty: not seen yet

  /// Converts a code of a regression target to the user's units.
  [[nodiscard]] double unscale(double scaled) const { return scaling.center + scaling.scale * scaled; }

  /// Converts a prediction to the user's units and clips it to [low, high] and to the interval of the training targets,
  /// extended by its width on both sides. Does not clip if no target has been seen. Second-order models have no bound
  /// on predictions for features far from the training rows.
  [[nodiscard]] double unscale_prediction(double scaled) const {
    const double width = max_seen - min_seen;
    const double value = unscale(scaled);
    return width < 0 ? value : std::clamp(value, std::max(low, min_seen - width), std::min(high, max_seen + width));
  }

  /// Likelihood of the codes. `round_to_float`: rounds the ends of the range to single precision, as the targets are
  /// rounded.
  [[nodiscard]] LikelihoodPointer likelihood(bool round_to_float = false) const;
  /// Converts a code to the target that metrics use: a number in the user's units, or 0 and 1 for classes.
  [[nodiscard]] double observed(double code) const;
  /// Converts a value of the linear predictor to a prediction: a number in the user's units, or the probability of the
  /// positive class.
  [[nodiscard]] double predicted(double predictor) const;
  /// Reported loss of a row: squared error in the user's units, or log-loss.
  [[nodiscard]] double score(double code, double predictor) const;
  /// Standard deviation of the target in the user's units, or of the probability of the positive class. The arguments
  /// are the prediction, the variance of the linear predictor, and the noise variance in units of codes.
  [[nodiscard]] double standard_deviation(double predicted, double predictor_variance, double noise_variance) const;

  /// Includes a training target, in the user's units, in [min_seen, max_seen].
  void update_bounds(double value) {
    min_seen = std::min(min_seen, value);
    max_seen = std::max(max_seen, value);
  }

  [[nodiscard]] bool has_low() const { return low > -std::numeric_limits<double>::max(); }
  [[nodiscard]] bool has_high() const { return high < std::numeric_limits<double>::max(); }

  /// The target of one row: a number, or the text of a cell, which may be a number, a label or missing. Does not own
  /// the text and the file name.
  struct Sample {
    explicit Sample(std::string_view cell, std::int64_t in_line = 0, const std::string* in_file = nullptr);
    explicit Sample(double value, std::int64_t in_line = 0, const std::string* in_file = nullptr)
        : number(value), line(in_line), file(in_file) {}

    [[nodiscard]] bool is_missing() const;
    /// Canonical label, which is equal for 1, 1.0 and +1.
    [[nodiscard]] std::string label() const;
    /// True if the labels are equal.
    [[nodiscard]] bool has_same_label(const Sample& other) const;

    double number;          ///< NaN: the cell is not a number
    std::string_view text;  ///< empty for numbers
    std::int64_t line;
    const std::string* file;  ///< nullptr: the file of the location that fit() receives
  };

  /// True if there are rows and all targets that are not missing have the same label.
  [[nodiscard]] static bool are_constant(const std::vector<Sample>& samples);

  /// True if the task is classification only because all targets so far are 0, all are 1 or all are -1. A second value
  /// decides: with the pair 0 and 1, or -1 and 1, the task stays classification; any other number makes it regression.
  [[nodiscard]] bool is_task_provisional() const;
  /// True if encode() does not change the task and the labels any more.
  [[nodiscard]] bool is_settled() const {
    return !likelihood_of(task).is_classification() || (!negative.empty() && !positive.empty());
  }

  /// Determines the task unless `given_task` is set, and the scaling or the labels. `centered` = false: the targets are
  /// measurements, which are numbers and are scaled without shifting 0.
  void fit(const std::vector<Sample>& samples, std::optional<Task> given_task, bool centered,
           const InputLocation& location);

  /// Determines the scaling, the clip limit, and the range unless it is given, from numbers with weights (empty: 1). No
  /// effect for likelihoods without an identity link.
  void fit_numbers(const std::vector<double>& numbers, std::span<const double> weights, bool centered);

  /// Sets the task to classification with two labels, of which the second is the positive class.
  void fit_labels(const std::string& negative_label, const std::string& positive_label);

  /// Returns the code of a target. Throws DataError if it is not a number or not one of the two classes.
  /// Classification: a second label becomes the second class, and may change a provisional task.
  double encode(std::string_view text, const InputLocation& location);

  double encode(double value, const InputLocation& location);

  /// Selects classification with these labels. encode() then returns +1 for the class `positive_class` and -1 for all
  /// others, or the index of the class if `positive_class` is negative. Other labels are errors.
  void set_classes(std::vector<std::string> labels, Index positive_class);
  /// Selects classification with the labels that encode() receives, in the order of their occurrence; encode() returns
  /// the index of the class.
  void collect_classes();
  /// Whether set_classes() or collect_classes() was called.
  [[nodiscard]] bool has_classes() const { return has_classes_; }
  /// Labels of set_classes() or collect_classes().
  [[nodiscard]] const std::vector<std::string>& classes() const { return classes_; }
  /// Code of the class with this index.
  [[nodiscard]] double encode_class_index(Index index) const {
    return positive_class_ < 0 ? static_cast<double>(index) : (index == positive_class_ ? 1 : -1);
  }

  /// Sorts labels: by value if both are numbers, else lexicographically.
  static void sort_labels(std::vector<std::string>& labels);

  /// Largest number of classes. Real-valued targets that are declared as classes exceed it.
  static constexpr std::size_t max_classes = 1000;

 private:
  void require_no_range() const;
  void infer_range(const std::vector<double>& numbers, std::span<const double> weights);
  [[nodiscard]] double encode_number(double value, const InputLocation& location) const;
  double encode_label(std::string_view label, const InputLocation& location);
  double encode_second_label(std::string_view label, const InputLocation& location);
  double encode_class(const std::string& label, const InputLocation& location);

  double last_value_ = std::numeric_limits<double>::quiet_NaN();  ///< argument of the last encode() of a class
  double last_code_ = 0;                                          ///< its result
  bool has_classes_ = false;
  bool collects_classes_ = false;
  Index positive_class_ = -1;
  std::vector<std::string> classes_;
  std::unordered_map<std::string, Index> class_indices_;
};

/// The number with the fewest digits that parse to the same double.
std::string format_shortest(double value);

}  // namespace dyad
