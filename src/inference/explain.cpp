#include "inference/explain.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "encoding/column_reader.h"
#include "inference/block_predictor.h"

namespace dyad {
namespace {

using TermKind = Explanation::TermKind;

/// Numbers of terms by kind and groups of features. A group is a column, or a hashed feature or index of sparse rows.
class TermNumbers {
 public:
  TermNumbers(const FeatureMap& map, Explanation& result) : map_(map), result_(result) {}

  Index find(TermKind kind, Index left = 0, Index right = 0) {
    const Key key{(static_cast<std::uint64_t>(kind) << 32U) + static_cast<std::uint64_t>(left),
                  static_cast<std::uint64_t>(right)};
    const auto [found, is_new] = numbers_.try_emplace(key, std::ssize(result_.terms));
    if (is_new) {
      const bool has_left = kind == TermKind::column || kind == TermKind::square || kind == TermKind::pair;
      result_.terms.push_back(
          {kind, has_left ? group_name(left) : std::string(), kind == TermKind::pair ? group_name(right) : ""});
    }
    return found->second;
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>((key.first * 0x9e3779b97f4a7c15U) ^ (key.second * 0xbf58476d1ce4e5b9U));
    }
  };
  [[nodiscard]] std::string group_name(Index group) const {
    const auto columns = std::ssize(map_.columns());
    return group < columns ? map_.columns()[static_cast<std::size_t>(group)].name : map_.name(group - columns);
  }

  const FeatureMap& map_;
  Explanation& result_;
  std::unordered_map<Key, Index, Hash> numbers_;
};

/// Sums of the terms of one row.
class RowTerms {
 public:
  void add(Index term, double value) {
    const auto at = static_cast<std::size_t>(term);
    if (at >= sums_.size()) {
      sums_.resize(at + 1, 0.0);
      is_used_.resize(at + 1, false);
    }
    if (!is_used_[at]) used_.push_back(term);
    is_used_[at] = true;
    sums_[at] += value;
  }
  /// Appends the row to the result and removes its terms.
  void finish(Explanation& result) {
    std::sort(used_.begin(), used_.end());
    for (const Index term : used_) {
      const auto at = static_cast<std::size_t>(term);
      result.indices.push_back(term);
      result.values.push_back(sums_[at]);
      sums_[at] = 0;
      is_used_[at] = false;
    }
    used_.clear();
    result.offsets.push_back(std::ssize(result.values));
  }

 private:
  std::vector<double> sums_;
  std::vector<bool> is_used_;
  std::vector<Index> used_;
};

/// Terms of a Model for encoded rows.
class LowRankTerms {
 public:
  explicit LowRankTerms(const ModelFile& file) : model_(file.model), map_(file.features) {
    const auto columns = std::ssize(map_.columns());
    groups_ = map_.indicator_columns();
    groups_.resize(static_cast<std::size_t>(model_.dim()), -1);
    has_square_.assign(groups_.size(), false);
    for (Index c = 0; c < columns; ++c) {
      const Column& column = map_.columns()[static_cast<std::size_t>(c)];
      if (column.role != Column::Role::numeric) continue;
      const auto feature = static_cast<std::size_t>(column.number_feature + (column.is_right ? model_.left_dim : 0));
      groups_[feature] = c;
      has_square_[feature] = true;
    }
    for (std::size_t j = 0; j < groups_.size(); ++j)
      if (groups_[j] < 0) {
        groups_[j] = columns + static_cast<Index>(j);
        has_square_[j] = true;
      }
  }

  void add(const Rows<double>& rows, Index i, double unit, TermNumbers& numbers, RowTerms& terms) {
    entries_.clear();
    rows.for_each_entry(i, [&](Index j, double z) {
      if (z != 0) entries_.emplace_back(static_cast<std::size_t>(j), z);
    });
    for (const auto& [j, z] : entries_)
      terms.add(numbers.find(TermKind::column, groups_[j]), unit * model_.weights[j] * z);
    for (std::size_t a = 0; a < entries_.size(); ++a)
      for (std::size_t b = model_.is_bilinear() ? a + 1 : a; b < entries_.size(); ++b)
        add_pair(a, b, unit, numbers, terms);
  }

 private:
  void add_pair(std::size_t a, std::size_t b, double unit, TermNumbers& numbers, RowTerms& terms) {
    const auto [i, left] = entries_[a];
    const auto [j, right] = entries_[b];
    if (model_.is_bilinear() && (static_cast<Index>(i) < model_.left_dim) == (static_cast<Index>(j) < model_.left_dim))
      return;
    const auto rank = static_cast<std::size_t>(model_.rank());
    double coefficient = 0;
    for (std::size_t c = 0; c < rank; ++c)
      coefficient += model_.spectrum[c] * model_.factors[i * rank + c] * model_.factors[j * rank + c];
    if (i == j)
      coefficient += model_.squares.empty() ? 0 : model_.squares[i];
    else if (!model_.is_bilinear())
      coefficient *= 2;
    const double value = unit * coefficient * left * right;
    if (value == 0) return;
    const Index first = std::min(groups_[i], groups_[j]);
    const Index second = std::max(groups_[i], groups_[j]);
    if (first != second) return terms.add(numbers.find(TermKind::pair, first, second), value);
    // The square of an indicator is the indicator.
    terms.add(numbers.find(has_square_[i] ? TermKind::square : TermKind::column, first), value);
  }

  const Model<double>& model_;
  const FeatureMap& map_;
  std::vector<Index> groups_;
  std::vector<bool> has_square_;
  std::vector<std::pair<std::size_t, double>> entries_;
};

/// Terms of an AnovaModel for encoded rows.
class AnovaTerms {
 public:
  explicit AnovaTerms(const ModelFile& file) : model_(*file.anova), reader_(file.features) {}

  void read(const Rows<double>& rows) {
    table_ = reader_.empty_table();
    reader_.append(rows, table_);
  }

  void add(Index i, double unit, TermNumbers& numbers, RowTerms& terms) {
    model_.evaluate_axes(table_, i, hats_);
    for (const AnovaBlock& block : model_.blocks) {
      double sum = 0;
      model_.for_each_weight(block, hats_.data(), [&](Index coefficient, double weight) {
        sum += weight * block.values[static_cast<std::size_t>(coefficient)];
      });
      const Index first = model_.axes[static_cast<std::size_t>(block.axes[0])].column;
      if (!block.is_pair()) {
        terms.add(numbers.find(TermKind::column, first), unit * sum);
        continue;
      }
      const Index second = model_.axes[static_cast<std::size_t>(block.axes[1])].column;
      terms.add(numbers.find(TermKind::pair, std::min(first, second), std::max(first, second)), unit * sum);
    }
  }

 private:
  const AnovaModel& model_;
  ColumnReader reader_;
  ColumnTable table_;
  std::vector<HatWeights> hats_;
};

}  // namespace

Explanation explain(ModelFile& file, const ErrorBars* error_bars, const DatasetView& rows, int threads,
                    const PredictHooks& hooks) {
  PredictOptions options;
  options.data.dataset = &rows;
  options.threads = threads;
  BlockPredictor predictor(file, options, hooks, TableEncoder::Targets::none, error_bars);
  const Target& target = file.features.target;
  const bool is_regression = likelihood_of(target.task).has_identity_link();
  const double unit = is_regression ? target.scaling.scale : 1;
  Explanation result;
  TermNumbers numbers(file.features, result);
  RowTerms terms;
  std::optional<AnovaTerms> anova;
  std::optional<LowRankTerms> low_rank;
  file.anova ? void(anova.emplace(file)) : void(low_rank.emplace(file));
  const double intercept =
      unit * (file.anova ? file.anova->intercept : file.model.intercept) + (is_regression ? target.scaling.center : 0);
  PredictSummary summary;
  while (predictor.next(summary)) {
    const RowBlock<double>& block = predictor.block();
    const Rows<double> view = block.view();
    std::vector<double> stored(block.lines.size());  // predictions of the stored parameters
    file.predict(view, stored);
    std::vector<double> average = stored;
    if (ErrorBars::predicts_by_posterior(file)) error_bars->posterior_predictors(block, 0, average);
    if (anova) anova->read(view);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const auto row = static_cast<Index>(i);
      terms.add(numbers.find(TermKind::intercept), intercept);
      if (anova)
        anova->add(row, unit, numbers, terms);
      else
        low_rank->add(view, row, unit, numbers, terms);
      if (average[i] != stored[i])
        terms.add(numbers.find(TermKind::posterior_average), unit * (average[i] - stored[i]));
      const double unlimited = is_regression ? target.unscale(average[i]) : average[i];
      const double prediction = is_regression ? predictor.predictions().values[i] : average[i];
      if (prediction != unlimited) terms.add(numbers.find(TermKind::limit), prediction - unlimited);
      result.predictions.push_back(prediction);
      terms.finish(result);
    }
  }
  return result;
}

}  // namespace dyad
