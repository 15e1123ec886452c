#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dyad/train.h>

#include "features/feature_map.h"
#include "fit/train_settings.h"
#include "refine/refine.h"
#include "rows/block.h"

namespace dyad {

/// Keeps the rows of the first pass, in memory or on disk, and makes the most of them afterwards.
template <typename Scalar>
class SecondLook {
 public:
  SecondLook(const TrainOptions& options, const TrainSettings& settings);

  /// Why there will be none, to be told to the user; empty otherwise, or where nobody would expect one.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] bool is_keeping() const { return kept_.has_value(); }
  /// One line; empty where no rows are kept.
  [[nodiscard]] std::string plan() const;

  /// Throws if the validation file has no rows, or rows that do not fit the map, which the first rows have fixed.
  void check_validation(FeatureMap& map, const std::function<bool()>& interrupted) const;

  void keep(const RowBlock<Scalar>& block);

  /// Few rows in memory are somebody's table, who expects that neither their order nor copies for weights matter. What
  /// one pass has made of them is not asked for.
  [[nodiscard]] bool counts_exactly(const FeatureMap& map) const;

  /// `map`: by now.
  RefineResult<Scalar> refine(const StreamLearner<Scalar>& learner, FeatureMap& map, const RefineOptions& hooks);

  /// Who does it, once all rows are there.
  [[nodiscard]] Solver solver() const { return solver_; }

 private:
  void give_up(std::string why);
  void borrow_rows();
  [[nodiscard]] std::optional<Solver> chosen_solver(const ModelShape& shape);
  bool read_validation(FeatureMap& map, const std::function<bool()>& interrupted,
                       const std::function<bool(const RowBlock<Scalar>&)>& visit) const;
  [[nodiscard]] KeptRows<Scalar> validation_rows(FeatureMap& map, const std::function<bool()>& interrupted) const;

  const TrainOptions& options_;
  const TrainSettings& settings_;
  std::optional<KeptRows<Scalar>> kept_;
  Index dense_dim_ = 0;
  bool is_one_block_ = false;
  std::string why_not_;
  Solver solver_ = Solver::newton;
};

}  // namespace dyad
