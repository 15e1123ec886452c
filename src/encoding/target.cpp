#include "encoding/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <dyad/error.h>
#include <dyad/rows.h>

#include "base/text.h"
#include "io/csv.h"
#include "io/parse_number.h"

namespace dyad {
namespace {

/// Canonical label, which is equal for 1, 1.0 and +1.
std::string canonical_label(std::string_view text) {
  double value = 0;
  return parse_number(text, value) && std::isfinite(value) ? format_shortest(value) : escape_invalid_utf8(text);
}

/// Order of labels: by value if both are numbers, else lexicographic.
bool label_less(const std::string& left, const std::string& right) {
  double left_value = 0;
  double right_value = 0;
  if (parse_number(left, left_value) && parse_number(right, right_value)) return left_value < right_value;
  return left < right;
}

/// True if a label denotes the positive class by convention. Used while the other label is unknown.
bool is_positive_label(const std::string& label) {
  double value = 0;
  if (parse_number(label, value)) return value > 0;
  constexpr std::array positive_labels{"yes", "true", "positive", "pos", "y", "t"};
  std::string lower = label;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(positive_labels.begin(), positive_labels.end(), lower) != positive_labels.end();
}

/// True for the pairs of numbers that count as classes if the task is not given.
bool are_class_labels(const std::vector<std::string>& sorted) {
  return sorted == std::vector<std::string>{"0", "1"} || sorted == std::vector<std::string>{"-1", "1"};
}

[[noreturn]] void throw_third_class(const InputLocation& location, const std::string& third, const std::string& first,
                                    const std::string& second) {
  throw ThirdClassError(location.file, location.line, location.column,
                        "the target has a third class " + quote_text(third) + " besides " + quote_text(first) +
                            " and " + quote_text(second) +
                            ", expected two; more than two classes need a new model and files, which are read several "
                            "times, instead of standard input");
}

double parse_finite_number(std::string_view text, const InputLocation& location, const std::string& name) {
  double value = 0;
  const bool is_number = parse_number(text, value);
  if (is_number && std::abs(value) <= max_abs_value) return value;
  const std::string column = name.empty() ? "the target" : "the target '" + name + "'";
  const std::string got = is_missing(text) ? "a missing value" : quote_text(text);
  throw DataError(location.file, location.line, location.column,
                  "expected a finite number (up to 1e70) as " + column + ", got " + got);
}

}  // namespace

std::string format_shortest(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

LikelihoodPointer Target::likelihood(bool round_to_float) const {
  const auto scaled = [&](double end) {
    const double value = scaling.apply(end);
    return round_to_float ? static_cast<double>(static_cast<float>(value)) : value;
  };
  Support support;
  if (has_low()) support.low = scaled(low);
  if (has_high()) support.high = scaled(high);
  return make_likelihood(task, support);
}

double Target::observed(double code) const {
  const Likelihood& unbounded = likelihood_of(task);
  return unbounded.has_identity_link() ? unscale(code) : unbounded.observed(code);
}

double Target::predicted(double predictor) const {
  const Likelihood& unbounded = likelihood_of(task);
  return unbounded.has_identity_link() ? unscale_prediction(predictor) : unbounded.mean(predictor);
}

double Target::score(double code, double predictor) const {
  return likelihood_of(task).score(observed(code), predicted(predictor));
}

double Target::standard_deviation(double predicted, double predictor_variance, double noise_variance) const {
  const Likelihood& unbounded = likelihood_of(task);
  const double variance = predictor_variance + (unbounded.has_noise_variance() ? noise_variance : 0);
  return std::sqrt(variance) * (unbounded.has_identity_link() ? scaling.scale : unbounded.mean_derivative(predicted));
}

Target::Sample::Sample(std::string_view cell, std::int64_t in_line, const std::string* in_file)
    : number(std::numeric_limits<double>::quiet_NaN()), text(cell), line(in_line), file(in_file) {
  if (double value = 0; parse_number(cell, value) && std::isfinite(value)) number = value;
}

bool Target::Sample::is_missing() const { return std::isnan(number) && dyad::is_missing(text); }

std::string Target::Sample::label() const {
  return std::isnan(number) ? escape_invalid_utf8(text) : format_shortest(number);
}

bool Target::Sample::has_same_label(const Sample& other) const {
  return std::isnan(number) ? std::isnan(other.number) && text == other.text : number == other.number;
}

bool Target::are_constant(const std::vector<Sample>& samples) {
  const Sample* first = nullptr;
  for (const Sample& sample : samples) {
    if (sample.is_missing()) continue;
    if (first == nullptr)
      first = &sample;
    else if (!sample.has_same_label(*first))
      return false;
  }
  return !samples.empty();
}

bool Target::is_task_provisional() const {
  const std::string& only = negative.empty() ? positive : negative;
  return is_task_inferred && likelihood_of(task).is_classification() && negative.empty() != positive.empty() &&
         (only == "0" || only == "1" || only == "-1");
}

void Target::fit(const std::vector<Sample>& samples, std::optional<Task> given_task, bool centered,
                 const InputLocation& location) {
  if (has_classes_) return require_no_range();
  std::vector<const Sample*> different;  // first sample of each label, at most three
  std::vector<double> numbers;
  for (const Sample& sample : samples) {
    if (!std::isnan(sample.number)) numbers.push_back(sample.number);
    if (different.size() > 2 || sample.is_missing()) continue;
    if (std::none_of(different.begin(), different.end(),
                     [&](const Sample* other) { return sample.has_same_label(*other); }))
      different.push_back(&sample);
  }
  std::vector<std::string> labels;
  labels.reserve(different.size());
  for (const Sample* sample : different) labels.push_back(sample->label());
  const bool is_numeric = 2 * numbers.size() >= samples.size();
  std::vector<std::string> sorted = labels;
  std::sort(sorted.begin(), sorted.end(), label_less);
  const bool is_single_class =
      !is_range_given && labels.size() == 1 && (labels[0] == "0" || labels[0] == "1" || labels[0] == "-1");
  const bool has_classes = centered && (!is_numeric || are_class_labels(sorted) || is_single_class);
  task = given_task.value_or(has_classes ? Task::classification : Task::regression);
  is_task_inferred = !given_task;
  if (likelihood_of(task).is_classification()) {
    require_no_range();
    if (labels.size() > 2) {
      const Sample& third = *different[2];
      throw_third_class({third.file != nullptr ? *third.file : location.file, third.line, location.column}, labels[2],
                        labels[0], labels[1]);
    }
    if (labels.size() == 2) {
      negative = sorted[0];
      positive = sorted[1];
    } else if (labels.size() == 1) {
      (is_positive_label(labels[0]) ? positive : negative) = labels[0];
    }
    return;
  }
  fit_numbers(numbers, {}, centered);
}

void Target::require_no_range() const {
  if (is_range_given)
    throw std::invalid_argument(
        "TrainOptions::range is set, but the target is a class; leave it out, or set ColumnOptions::task to "
        "regression");
}

void Target::fit_labels(const std::string& negative_label, const std::string& positive_label) {
  require_no_range();
  task = Task::classification;
  negative = canonical_label(negative_label);
  positive = canonical_label(positive_label);
}

void Target::fit_numbers(const std::vector<double>& numbers, std::span<const double> weights, bool centered) {
  if (!likelihood_of(task).has_identity_link()) return;
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  if (centered && !is_range_given) infer_range(numbers, weights);
  scaling = robust_scaling(numbers, weights);
  // In standard deviations, the unit of codes. Sensitivity: docs/constants.md.
  constexpr double min_clip_limit_deviations = 30;
  if (centered && scaling.high < Scaling().high)
    clip_limit = std::max(min_clip_limit_deviations, (scaling.high - scaling.center) / scaling.scale);
  scaling.low = Scaling().low;
  scaling.high = Scaling().high;
  if (!centered) {
    // Measurements: codes are y / max(standard deviation, |mean|), without a shift.
    double squares = 0;
    double total_weight = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      squares += weight(i) * (numbers[i] - scaling.center) * (numbers[i] - scaling.center);
      total_weight += weight(i);
    }
    const double variance = numbers.empty() ? 1 : squares / total_weight;
    scaling.scale = std::max(std::sqrt(variance), std::abs(scaling.center));
    if (!(scaling.scale > 0 && std::isfinite(scaling.scale))) scaling.scale = 1;
    scaling.center = 0;
  }
}

/// Sets an end of the range if at least 2% of the targets, and at least 10, are equal to it. Examples are ratings and
/// capped prices.
void Target::infer_range(const std::vector<double>& numbers, std::span<const double> weights) {
  if (numbers.empty()) return;
  const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
  if (!(*min < *max)) return;
  const auto is_common = [&](double value) {
    // Number of targets at the end, counted with weights. Sensitivity: docs/constants.md.
    constexpr double min_weight_at_end = 10;
    constexpr double min_share_at_end = 0.02;  // docs/method.md, "Ranges"
    double total_weight = 0;
    double weight_at_end = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double weight = weights.empty() ? 1 : weights[i];
      total_weight += weight;
      weight_at_end += numbers[i] == value ? weight : 0;
    }
    return weight_at_end >= min_weight_at_end && weight_at_end >= min_share_at_end * total_weight;
  };
  if (is_common(*min)) low = *min;
  if (is_common(*max)) high = *max;
}

double Target::encode_number(double value, const InputLocation& location) const {
  if (is_range_given && (value < low || value > high))
    throw DataError(location.file, location.line, location.column,
                    "the target " + format_shortest(value) + " is outside the given range, " + format_shortest(low) +
                        " to " + format_shortest(high));
  return scaling.apply(value);
}

double Target::encode(std::string_view text, const InputLocation& location) {
  if (!likelihood_of(task).is_classification())
    return encode_number(parse_finite_number(text, location, name), location);
  if (is_missing(text))
    throw DataError(location.file, location.line, location.column,
                    "expected a class as the target, got a missing value");
  if (has_classes_) return encode_class(canonical_label(text), location);
  if (text == negative) return -1;
  if (text == positive) return 1;
  return encode_label(canonical_label(text), location);
}

double Target::encode(double value, const InputLocation& location) {
  if (!likelihood_of(task).is_classification()) {
    if (std::abs(value) > max_abs_value)
      throw DataError(location.file, location.line, location.column,
                      "expected a target with a magnitude of at most 1e70");
    return encode_number(value, location);
  }
  if (value != last_value_) {
    last_code_ =
        has_classes_ ? encode_class(format_shortest(value), location) : encode_label(format_shortest(value), location);
    last_value_ = value;
  }
  return last_code_;
}

double Target::encode_label(std::string_view label, const InputLocation& location) {
  if (label == negative) return -1;
  if (label == positive) return 1;
  if (!negative.empty() && !positive.empty()) throw_third_class(location, std::string(label), negative, positive);
  if (is_task_provisional()) return encode_second_label(label, location);
  (negative.empty() ? negative : positive) = label;
  return encode_label(label, location);
}

void Target::set_classes(std::vector<std::string> labels, Index positive_class) {
  std::vector<std::string> canonical;
  class_indices_.clear();
  for (const std::string& label : labels) {
    canonical.push_back(canonical_label(label));
    class_indices_.try_emplace(canonical.back(), static_cast<Index>(class_indices_.size()));
  }
  if (class_indices_.size() < labels.size()) {  // texts that differ, but denote the same number
    canonical = std::move(labels);
    class_indices_.clear();
    for (const std::string& label : canonical) class_indices_.emplace(label, static_cast<Index>(class_indices_.size()));
  }
  classes_ = std::move(canonical);
  has_classes_ = true;
  collects_classes_ = false;
  positive_class_ = positive_class;
  last_value_ = std::numeric_limits<double>::quiet_NaN();
  task = Task::classification;
  is_task_inferred = false;
  if (positive_class < 0) return;
  positive = classes_.at(static_cast<std::size_t>(positive_class));
  negative = "not " + positive;
}

void Target::collect_classes() {
  set_classes({}, -1);
  collects_classes_ = true;
}

void Target::sort_labels(std::vector<std::string>& labels) { std::sort(labels.begin(), labels.end(), label_less); }

double Target::encode_class(const std::string& label, const InputLocation& location) {
  const auto found = class_indices_.find(label);
  if (found != class_indices_.end()) return encode_class_index(found->second);
  if (!collects_classes_)
    throw DataError(location.file, location.line, location.column,
                    "expected one of the " + std::to_string(classes_.size()) + " classes of the model (" +
                        quote_text(classes_.front()) + ", " + quote_text(classes_[1]) + ", ...), got " +
                        quote_text(label));
  if (classes_.size() == max_classes)
    throw DataError(location.file, location.line, location.column,
                    "the target has more than " + std::to_string(max_classes) +
                        " classes; expected few different labels (for a number, set ColumnOptions::task to "
                        "regression)");
  class_indices_[label] = static_cast<Index>(classes_.size());
  classes_.push_back(label);
  return encode_class_index(static_cast<Index>(classes_.size()) - 1);
}

double Target::encode_second_label(std::string_view label, const InputLocation& location) {
  const std::string first = negative.empty() ? positive : negative;
  std::vector<std::string> both{first, std::string(label)};
  std::sort(both.begin(), both.end(), label_less);
  if (are_class_labels(both)) {
    negative = both[0];
    positive = both[1];
    return encode_label(label, location);
  }
  double second = 0;
  if (!parse_number(label, second) || !std::isfinite(second))
    throw DataError(location.file, location.line, location.column,
                    "expected a number as the target, which is " + first + " in all earlier rows, got " +
                        quote_text(label) + " (for two classes, set ColumnOptions::task to classification)");
  // Earlier rows have been encoded with `code`. The scaling is chosen such that it maps their target to the same code.
  const double code = negative.empty() ? 1 : -1;
  double value = 0;
  (void)parse_number(first, value);
  task = Task::regression;
  negative.clear();
  positive.clear();
  scaling = Scaling();
  scaling.scale = std::abs(second - value);
  scaling.center = value - code * scaling.scale;
  return scaling.apply(second);
}

}  // namespace dyad
