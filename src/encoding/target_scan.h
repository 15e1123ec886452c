#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "encoding/target.h"

namespace dyad {

/// Summary of all targets in bounded memory: a uniform random sample (reservoir sampling), and the first row of each of
/// the first three labels. Owns its texts and file names.
class TargetScan {
 public:
  /// `sample.file` must not be nullptr.
  void add(const Target::Sample& sample) {
    ++count_;
    if (sample_.size() < sample_size)
      sample_.push_back(store(sample));
    else if (const auto position = static_cast<std::size_t>(random_.uniform() * count_); position < sample_size)
      sample_[position] = store(sample);
    if (first_of_label_.size() > 2) return;
    for (const StoredSample& earlier : first_of_label_)
      if (earlier.view().has_same_label(sample)) return;
    first_of_label_.push_back(store(sample));
  }

  [[nodiscard]] bool is_empty() const { return sample_.empty(); }

  /// All stored targets. The result refers to this object.
  [[nodiscard]] std::vector<Target::Sample> samples() const {
    std::vector<Target::Sample> views;
    for (const auto* stored : {&first_of_label_, &sample_})
      for (const StoredSample& one : *stored) views.push_back(one.view());
    return views;
  }

 private:
  static constexpr std::size_t sample_size = 4096;  ///< as max_block_rows in row_reader.cpp

  struct StoredSample {
    Target::Sample sample;
    std::string text;

    [[nodiscard]] Target::Sample view() const {
      Target::Sample view = sample;
      view.text = text;
      return view;
    }
  };

  StoredSample store(const Target::Sample& sample) {
    if (files_.empty() || files_.back() != *sample.file) files_.push_back(*sample.file);
    StoredSample result{sample, std::string(sample.text)};
    result.sample.file = &files_.back();
    return result;
  }

  Random random_{1, start_stream - 3};        ///< constant seed and stream: the sample is reproducible
  double count_ = 0;                          ///< targets that add() has received
  std::vector<StoredSample> first_of_label_;  ///< in the order of occurrence, at most three
  std::vector<StoredSample> sample_;
  std::deque<std::string> files_;  ///< a deque, so that pointers to its elements stay valid
};

/// Target::fit() with the targets of the first rows. If these are all equal and the task is not given, `scan` reads the
/// targets of all rows that can be read twice, which are used together with the first row.
inline void fit_target_by_scan(Target& target, std::vector<Target::Sample> samples, std::optional<Task> given_task,
                               bool centered, const InputLocation& location,
                               const std::function<void(TargetScan&)>& scan) {
  TargetScan all;
  if (scan && !given_task && Target::are_constant(samples)) scan(all);
  if (!all.is_empty()) {
    const std::vector<Target::Sample> scanned = all.samples();
    samples.erase(samples.begin() + 1, samples.end());
    samples.insert(samples.end(), scanned.begin(), scanned.end());
  }
  target.fit(samples, given_task, centered, location);
}

}  // namespace dyad
