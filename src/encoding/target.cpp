#include "encoding/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <dyad/data_error.h>

#include "base/text.h"
#include "io/csv.h"
#include "io/parse_number.h"

namespace dyad {
namespace {

/// The same label for 1, 1.0 and +1.
std::string canonical(std::string_view text) {
  double value = 0;
  return parse_number(text, value) && std::isfinite(value) ? shortest(value) : valid_utf8(text);
}

bool label_before(const std::string& left, const std::string& right) {
  double left_value = 0;
  double right_value = 0;
  if (parse_number(left, left_value) && parse_number(right, right_value)) return left_value < right_value;
  return left < right;
}

/// Whether a label that stands alone so far is the positive one.
bool sounds_positive(const std::string& label) {
  double value = 0;
  if (parse_number(label, value)) return value > 0;
  constexpr std::array words{"yes", "true", "positive", "pos", "y", "t"};
  std::string lower = label;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(words.begin(), words.end(), lower) != words.end();
}

bool are_usual_classes(const std::vector<std::string>& sorted) {
  return sorted == std::vector<std::string>{"0", "1"} || sorted == std::vector<std::string>{"-1", "1"};
}

[[noreturn]] void refuse_third_class(const Place& place, const std::string& third, const std::string& first,
                                     const std::string& second) {
  throw DataError(place.file, place.line, place.column,
                  "the target has a third class " + in_quotes(third) + " besides " + in_quotes(first) + " and " +
                      in_quotes(second) + ", expected two; for more classes train one model for each against the rest");
}

double finite_number(std::string_view text, const Place& place, const std::string& name) {
  double value = 0;
  const bool is_number = parse_number(text, value);
  if (is_number && std::abs(value) <= largest_value) return value;
  const std::string column = name.empty() ? "the target" : "the target '" + name + "'";
  const std::string got = is_missing(text) ? "a missing value" : in_quotes(text);
  throw DataError(place.file, place.line, place.column,
                  "expected a finite number (up to 1e70) as " + column + ", got " + got);
}

}  // namespace

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

LikelihoodPointer Target::likelihood(bool rounded) const {
  const auto scaled = [&](double end) {
    const double value = scaling.apply(end);
    return rounded ? static_cast<double>(static_cast<float>(value)) : value;
  };
  Support support;
  if (has_low()) support.low = scaled(low);
  if (has_high()) support.high = scaled(high);
  return make_likelihood(task, support);
}

double Target::observed(double code) const {
  const Likelihood& unbounded = likelihood_of(task);
  return unbounded.has_identity_link() ? in_units(code) : unbounded.observed(code);
}

double Target::predicted(double predictor) const {
  const Likelihood& unbounded = likelihood_of(task);
  return unbounded.has_identity_link() ? prediction_in_units(predictor) : unbounded.mean(predictor);
}

double Target::score(double code, double predictor) const {
  return likelihood_of(task).score(observed(code), predicted(predictor));
}

double Target::deviation(double predicted, double predictor_variance, double noise_variance) const {
  const Likelihood& unbounded = likelihood_of(task);
  const double variance = predictor_variance + (unbounded.has_noise_variance() ? noise_variance : 0);
  return std::sqrt(variance) * (unbounded.has_identity_link() ? scaling.scale : unbounded.mean_slope(predicted));
}

Target::Sample::Sample(std::string_view cell, std::int64_t in_line, const std::string* in_file)
    : number(std::numeric_limits<double>::quiet_NaN()), text(cell), line(in_line), file(in_file) {
  if (double value = 0; parse_number(cell, value) && std::isfinite(value)) number = value;
}

bool Target::Sample::is_missing() const { return std::isnan(number) && dyad::is_missing(text); }

std::string Target::Sample::label() const { return std::isnan(number) ? valid_utf8(text) : shortest(number); }

bool Target::Sample::is_same(const Sample& other) const {
  return std::isnan(number) ? std::isnan(other.number) && text == other.text : number == other.number;
}

bool Target::are_constant(const std::vector<Sample>& samples) {
  const Sample* first = nullptr;
  for (const Sample& sample : samples) {
    if (sample.is_missing()) continue;
    if (first == nullptr)
      first = &sample;
    else if (!sample.is_same(*first))
      return false;
  }
  return !samples.empty();
}

bool Target::is_provisional() const {
  const std::string& only = negative.empty() ? positive : negative;
  return task_is_open && likelihood_of(task).is_classification() && negative.empty() != positive.empty() &&
         (only == "0" || only == "1" || only == "-1");
}

void Target::fix(const std::vector<Sample>& samples, std::optional<Task> given, bool centred, const Place& place) {
  std::vector<const Sample*> different;  // at most three
  std::vector<double> numbers;
  for (const Sample& sample : samples) {
    if (!std::isnan(sample.number)) numbers.push_back(sample.number);
    if (different.size() > 2 || sample.is_missing()) continue;
    if (std::none_of(different.begin(), different.end(), [&](const Sample* other) { return sample.is_same(*other); }))
      different.push_back(&sample);
  }
  std::vector<std::string> labels;
  labels.reserve(different.size());
  for (const Sample* sample : different) labels.push_back(sample->label());
  const bool numeric = 2 * numbers.size() >= samples.size();
  std::vector<std::string> sorted = labels;
  std::sort(sorted.begin(), sorted.end(), label_before);
  const bool is_one_class =
      !range_is_given && labels.size() == 1 && (labels[0] == "0" || labels[0] == "1" || labels[0] == "-1");
  const bool are_classes = centred && (!numeric || are_usual_classes(sorted) || is_one_class);
  task = given.value_or(are_classes ? Task::classification : Task::regression);
  task_is_open = !given;
  if (likelihood_of(task).is_classification()) {
    refuse_range();
    if (labels.size() > 2) {
      const Sample& third = *different[2];
      refuse_third_class({third.file != nullptr ? *third.file : place.file, third.line, place.column}, labels[2],
                         labels[0], labels[1]);
    }
    if (labels.size() == 2) {
      negative = sorted[0];
      positive = sorted[1];
    } else if (labels.size() == 1) {
      (sounds_positive(labels[0]) ? positive : negative) = labels[0];
    }
    return;
  }
  fix_numbers(numbers, {}, centred);
}

void Target::refuse_range() const {
  if (range_is_given) throw std::invalid_argument("--range is for numbers, but the target is a class");
}

void Target::fix_labels(const std::string& first, const std::string& second) {
  refuse_range();
  task = Task::classification;
  negative = canonical(first);
  positive = canonical(second);
}

void Target::fix_numbers(const std::vector<double>& numbers, std::span<const double> weights, bool centred) {
  if (!likelihood_of(task).has_identity_link()) return;
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  if (centred && !range_is_given) find_range(numbers, weights);
  scaling = robust_scaling(numbers, weights);
  constexpr double usual_reach = 30;
  if (centred && scaling.high < Scaling().high)
    reach = std::max(usual_reach, (scaling.high - scaling.centre) / scaling.scale);
  scaling.low = Scaling().low;
  scaling.high = Scaling().high;
  if (!centred) {
    double squares = 0;
    double all = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      squares += weight(i) * (numbers[i] - scaling.centre) * (numbers[i] - scaling.centre);
      all += weight(i);
    }
    const double variance = numbers.empty() ? 1 : squares / all;
    scaling.scale = std::max(std::sqrt(variance), std::abs(scaling.centre));
    if (!(scaling.scale > 0 && std::isfinite(scaling.scale))) scaling.scale = 1;
    scaling.centre = 0;
  }
}

/// A rating scale or a capped price: a good share of the targets lies exactly at an end.
void Target::find_range(const std::vector<double>& numbers, std::span<const double> weights) {
  if (numbers.empty()) return;
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  if (!(*least < *most)) return;
  const auto is_common = [&](double value) {
    constexpr double fewest = 10;
    constexpr double share = 0.02;
    double all = 0;
    double here = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double weight = weights.empty() ? 1 : weights[i];
      all += weight;
      here += numbers[i] == value ? weight : 0;
    }
    return here >= fewest && here >= share * all;
  };
  if (is_common(*least)) low = *least;
  if (is_common(*most)) high = *most;
}

double Target::encode_number(double value, const Place& place) const {
  if (range_is_given && (value < low || value > high))
    throw DataError(place.file, place.line, place.column,
                    "the target " + shortest(value) + " lies outside of the range that was given, " + shortest(low) +
                        " to " + shortest(high));
  return scaling.apply(value);
}

double Target::encode(std::string_view text, const Place& place) {
  if (!likelihood_of(task).is_classification()) return encode_number(finite_number(text, place, name), place);
  if (is_missing(text))
    throw DataError(place.file, place.line, place.column, "expected a class as the target, got a missing value");
  if (text == negative) return -1;
  if (text == positive) return 1;
  return encode_label(canonical(text), place);
}

double Target::encode(double value, const Place& place) {
  if (!likelihood_of(task).is_classification()) {
    if (std::abs(value) > largest_value)
      throw DataError(place.file, place.line, place.column, "expected a target up to 1e70 in size");
    return encode_number(value, place);
  }
  if (value != last_value_) {
    last_code_ = encode_label(shortest(value), place);
    last_value_ = value;
  }
  return last_code_;
}

double Target::encode_label(std::string_view label, const Place& place) {
  if (label == negative) return -1;
  if (label == positive) return 1;
  if (!negative.empty() && !positive.empty()) refuse_third_class(place, std::string(label), negative, positive);
  if (is_provisional()) return encode_second_value(label, place);
  (negative.empty() ? negative : positive) = label;
  return encode_label(label, place);
}

double Target::encode_second_value(std::string_view label, const Place& place) {
  const std::string first = negative.empty() ? positive : negative;
  std::vector<std::string> both{first, std::string(label)};
  std::sort(both.begin(), both.end(), label_before);
  if (are_usual_classes(both)) {
    negative = both[0];
    positive = both[1];
    return encode_label(label, place);
  }
  double second = 0;
  if (!parse_number(label, second) || !std::isfinite(second))
    throw DataError(place.file, place.line, place.column,
                    "expected a number as the target, which is " + first + " in all rows before, got " +
                        in_quotes(label) + " (if these are two classes, say so with --task classification)");
  // The rows before keep their code, which is the scaled value of their target.
  const double code = negative.empty() ? 1 : -1;
  double value = 0;
  (void)parse_number(first, value);
  task = Task::regression;
  negative.clear();
  positive.clear();
  scaling = Scaling();
  scaling.scale = std::abs(second - value);
  scaling.centre = value - code * scaling.scale;
  return scaling.apply(second);
}

}  // namespace dyad
