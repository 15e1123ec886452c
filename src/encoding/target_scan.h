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

/// The targets of many rows in bounded memory: a uniform random sample of them, and the first row of each of the first
/// three values.
class TargetScan {
 public:
  /// The sample names its file.
  void add(const Target::Sample& sample) {
    ++count_;
    if (sample_.size() < sample_size)
      sample_.push_back(kept(sample));
    else if (const auto place = static_cast<std::size_t>(random_.uniform() * count_); place < sample_size)
      sample_[place] = kept(sample);
    if (first_.size() > 2) return;
    for (const Kept& before : first_)
      if (before.view().is_same(sample)) return;
    first_.push_back(kept(sample));
  }

  [[nodiscard]] bool is_empty() const { return sample_.empty(); }

  /// Views of this object's texts.
  [[nodiscard]] std::vector<Target::Sample> samples() const {
    std::vector<Target::Sample> views;
    for (const auto* kept : {&first_, &sample_})
      for (const Kept& one : *kept) views.push_back(one.view());
    return views;
  }

 private:
  static constexpr std::size_t sample_size = 4096;  // as many as the rows of a usual block

  struct Kept {
    Target::Sample sample;
    std::string text;

    [[nodiscard]] Target::Sample view() const {
      Target::Sample view = sample;
      view.text = text;
      return view;
    }
  };

  Kept kept(const Target::Sample& sample) {
    if (files_.empty() || files_.back() != *sample.file) files_.push_back(*sample.file);
    Kept result{sample, std::string(sample.text)};
    result.sample.file = &files_.back();
    return result;
  }

  Random random_{1, start_stream - 3};
  double count_ = 0;
  std::vector<Kept> first_;
  std::vector<Kept> sample_;
  std::deque<std::string> files_;  ///< places stay valid
};

/// Target::fix() by the first rows. Where all of their targets are the same and the task is not given, `scan` reads the
/// targets of all rows that can be read again, and these decide together with the first row.
inline void fix_by_scan(Target& target, std::vector<Target::Sample> samples, std::optional<Task> given, bool centred,
                        const Place& place, const std::function<void(TargetScan&)>& scan) {
  TargetScan all;
  if (scan && !given && Target::are_constant(samples)) scan(all);
  if (!all.is_empty()) {
    const std::vector<Target::Sample> scanned = all.samples();
    samples.erase(samples.begin() + 1, samples.end());
    samples.insert(samples.end(), scanned.begin(), scanned.end());
  }
  target.fix(samples, given, centred, place);
}

}  // namespace dyad
