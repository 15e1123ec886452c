#pragma once

#include <span>
#include <vector>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "data/column_table.h"
#include "model/anova_model.h"
#include "solvers/anova/response.h"
#include "solvers/anova/variance_components.h"

namespace dyad {

/// Sums over rows of the basis functions phi of the blocks of a model and of working responses z with weights w:
/// sum w phi phi', sum w phi, sum w phi z, sum w z, sum w z^2 and sum w. The sums of disjoint sets of rows add, so that
/// the coefficients can be estimated from rows that are not stored or that several workers hold.
class BasisSums {
 public:
  BasisSums() = default;
  /// Sums over no rows, for the blocks of a model.
  explicit BasisSums(const AnovaModel& model);

  /// Adds rows. Responses of classes and censored targets are linearized at the predictions of `model`, whose blocks
  /// must be those of the constructor. `weights`: repetition counts; empty: 1. Runs on all threads of the pool; the
  /// result does not depend on their number.
  void add(const AnovaModel& model, const ColumnTable& table, std::span<const double> targets,
           std::span<const double> weights, const ResponseLink& link, ThreadPool& pool);
  /// Adds the sums of other rows for the same blocks.
  void add(const BasisSums& other);

  /// The sums of L'phi, centered by its weighted mean `centers`, and of z, centered by its mean. `bases`: L of each
  /// block.
  [[nodiscard]] CenteredSums project(const std::vector<RowMajorMatrix<double>>& bases, Vector<double>& centers) const;
  /// Weighted mean of z.
  [[nodiscard]] double mean() const { return z_ / weight_; }
  /// Sum of the weights w.
  [[nodiscard]] double weight() const { return weight_; }
  /// Number of numbers that archive() stores.
  [[nodiscard]] static double archived_numbers(const AnovaModel& model);

  /// Saves or loads the sums. Loading requires an object for the same blocks.
  void archive(Archive& archive);

 private:
  [[nodiscard]] Index size() const { return offsets_.back(); }

  std::vector<Index> offsets_{0};  ///< first basis function of each block, and their total number
  RowMajorMatrix<double> gram_;    ///< sum w phi phi': blocks on and above the diagonal
  Vector<double> basis_;           ///< sum w phi
  Vector<double> moments_;         ///< sum w phi z
  double z_ = 0;                   ///< sum w z
  double zz_ = 0;                  ///< sum w z^2
  double weight_ = 0;              ///< sum w
};

}  // namespace dyad
