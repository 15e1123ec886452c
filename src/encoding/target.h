#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dyad/data.h>

#include "encoding/scaling.h"
#include "likelihood/likelihood.h"

namespace dyad {

/// Where a cell stands, for messages.
struct Place {
  const std::string& file;
  std::int64_t line = 0;
  std::int64_t column = 0;
};

/// What a target is to the solver: a number, centred and scaled by the first rows, or a class, -1 or +1.
class Target {
 public:
  std::string name;  ///< of the column; empty where the format has a place for it
  Task task = Task::regression;
  Scaling scaling;
  double reach = std::numeric_limits<double>::max();  ///< scaled targets beyond it are clipped in training
  double low = -std::numeric_limits<double>::max();   ///< in the user's units: no target lies below, and a target here
                                                      ///< may stand for anything below; predictions stay above it
  double high = std::numeric_limits<double>::max();   ///< likewise
  double least_seen = std::numeric_limits<double>::max();  ///< in the user's units; above most_seen if no target
  double most_seen = -std::numeric_limits<double>::max();  ///< has been seen
  bool range_is_given = false;  ///< by the user; else found in the first rows, and given up when it is broken
  bool task_is_open = false;    ///< classes of a run that has not been told the task: see is_provisional()
  std::string negative;         ///< the labels; empty: not seen yet
  std::string positive;

  /// What a solver's number means to the user.
  [[nodiscard]] double in_units(double scaled) const { return scaling.centre + scaling.scale * scaled; }

  /// The same for a prediction, which stays within the range, and within reach of what was seen: a second-order model
  /// of a feature that is far off can be off by any amount.
  [[nodiscard]] double prediction_in_units(double scaled) const {
    const double width = most_seen - least_seen;
    const double value = in_units(scaled);
    return width < 0 ? value : std::clamp(value, std::max(low, least_seen - width), std::min(high, most_seen + width));
  }

  /// The likelihood that solvers use, in their units. `rounded`: ends of the range are rounded to single precision, as
  /// targets are.
  [[nodiscard]] LikelihoodPointer likelihood(bool rounded = false) const;
  /// What a code means to the user: a number in the target's units, or 0 and 1 for classes.
  [[nodiscard]] double observed(double code) const;
  /// What a linear predictor means to the user: a number in the target's units, or the probability of the positive
  /// class.
  [[nodiscard]] double predicted(double predictor) const;
  /// The loss that users see: squared error in the target's units, or log-loss.
  [[nodiscard]] double score(double code, double predictor) const;
  /// Standard deviation of the target, or of the probability of the positive class, from the variance of the linear
  /// predictor and the noise variance, both in the units of solvers.
  [[nodiscard]] double deviation(double predicted, double predictor_variance, double noise_variance) const;

  void see(double value) {
    least_seen = std::min(least_seen, value);
    most_seen = std::max(most_seen, value);
  }

  [[nodiscard]] bool has_low() const { return low > -std::numeric_limits<double>::max(); }
  [[nodiscard]] bool has_high() const { return high < std::numeric_limits<double>::max(); }

  /// The target of one row: a number, or the text of a cell, which may be a number, a label or missing.
  struct Sample {
    explicit Sample(std::string_view cell, std::int64_t in_line = 0, const std::string* in_file = nullptr);
    explicit Sample(double value, std::int64_t in_line = 0, const std::string* in_file = nullptr)
        : number(value), line(in_line), file(in_file) {}

    [[nodiscard]] bool is_missing() const;
    /// The same for 1, 1.0 and +1.
    [[nodiscard]] std::string label() const;
    /// Whether the labels are the same.
    [[nodiscard]] bool is_same(const Sample& other) const;

    double number;          ///< NaN: the cell is none
    std::string_view text;  ///< empty for numbers
    std::int64_t line;
    const std::string* file;  ///< nullptr: the file of the place that goes with the samples
  };

  /// Whether these rows do not tell the task: all targets are the same.
  [[nodiscard]] static bool are_constant(const std::vector<Sample>& samples);

  /// Whether the task is classification because all targets so far are 0, all are 1 or all are -1. A second value
  /// that makes 0 and 1, or -1 and 1, of them decides for classes, any other number for regression.
  [[nodiscard]] bool is_provisional() const;

  /// Decides from some rows: the task unless given, scale and labels. Measurements (`centred` false) are numbers and
  /// keep their 0.
  void fix(const std::vector<Sample>& samples, std::optional<Task> given, bool centred, const Place& place);

  /// The scale, and the range unless it is given, from rows of numbers with weights (empty: 1). Targets of likelihoods
  /// without an identity link stay as they are.
  void fix_numbers(const std::vector<double>& numbers, std::span<const double> weights, bool centred);

  /// The same from two labels, of which the second is the positive one.
  void fix_labels(const std::string& first, const std::string& second);

  /// The solver's number for the text of a target. Throws DataError for what is none; a second class is learned here.
  double encode(std::string_view text, const Place& place);

  /// The same for a number.
  double encode(double value, const Place& place);

 private:
  void refuse_range() const;
  void find_range(const std::vector<double>& numbers, std::span<const double> weights);
  [[nodiscard]] double encode_number(double value, const Place& place) const;
  double encode_label(std::string_view label, const Place& place);
  double encode_second_value(std::string_view label, const Place& place);

  double last_value_ = std::numeric_limits<double>::quiet_NaN();  ///< a class as a number, and its code
  double last_code_ = 0;
};

/// A number in the shortest form that reads back as the same.
std::string shortest(double value);

}  // namespace dyad
