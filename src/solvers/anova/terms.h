#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "solvers/anova/basis/axes.h"
#include "solvers/anova/basis/hat_products.h"
#include "solvers/anova/basis/kernels.h"
#include "solvers/anova/response.h"
#include "solvers/anova/variance_components.h"

namespace dyad {

/// An axis with its basis functions for all rows and its kernels.
struct FittedAxis {
  FittedAxis(AnovaAxis knots, const ColumnTable& table, std::span<const double> weights);
  /// Axis without rows.
  FittedAxis(AnovaAxis knots, Vector<double> hat_means);

  AnovaAxis axis;
  HatRows hats;
  Vector<double> means;  ///< mean values of the basis functions
  AxisKernels kernels;
};

/// Axes of the columns of a table at several resolutions, computed at first use. Does not own the table and the
/// weights; the caller keeps them alive.
class AxisCache {
 public:
  /// `weights`: repetition counts of the rows; empty: 1.
  explicit AxisCache(const ColumnTable& table, std::span<const double> weights = {});

  [[nodiscard]] const ColumnDistribution& distribution(Index column) const {
    return distributions_[static_cast<std::size_t>(column)];
  }
  /// Axis of a column with about `knots` knots. References stay valid.
  const FittedAxis& get(Index column, Index knots);
  /// Axis for the function of the column alone.
  const FittedAxis& get_main(Index column);

 private:
  const FittedAxis& insert(std::pair<Index, Index> key, AnovaAxis axis);

  const ColumnTable& table_;
  std::span<const double> weights_;
  std::vector<ColumnDistribution> distributions_;
  std::map<std::pair<Index, Index>, std::unique_ptr<FittedAxis>> axes_;
};

/// A kernel of a term and its prior variance.
struct TermKernel {
  BlockKernel kernel;
  RowMajorMatrix<double> factor;      ///< U: the covariance is U U'
  RowMajorMatrix<double> covariance;  ///< of the coefficients in the basis of the term, for variance 1
  double theta = 0;                   ///< prior variance
  Index tie = -1;                     ///< kernels with the same non-negative number share one variance
  double penalty = 0;                 ///< as VarianceBlock::Component::penalty
};

/// A function of one or two columns during the fit: f = Phi L gamma, where the columns of L span the kernels.
struct Term {
  const FittedAxis* first = nullptr;
  const FittedAxis* second = nullptr;   ///< null: function of one column
  std::pair<Index, Index> knots{0, 0};  ///< requested resolution of the axes
  std::vector<TermKernel> kernels;
  RowMajorMatrix<double> basis;  ///< L
  Vector<double> values;         ///< coefficients of the basis functions: L gamma
  std::vector<double> fitted;    ///< values of the function for all rows

  /// Function of one column.
  explicit Term(const FittedAxis& axis) : first(&axis) {}
  /// Function of two columns at a resolution.
  Term(const FittedAxis& first_axis, const FittedAxis& second_axis, std::pair<Index, Index> resolution)
      : first(&first_axis), second(&second_axis), knots(resolution) {}

  [[nodiscard]] bool is_pair() const { return second != nullptr; }
  [[nodiscard]] BlockRows rows() const;
  [[nodiscard]] Index size() const { return rows().size(); }
  [[nodiscard]] std::pair<Index, Index> columns() const {
    return {first->axis.column, is_pair() ? second->axis.column : -1};
  }
  /// All kernels that the axes allow.
  [[nodiscard]] std::vector<BlockKernel> default_kernels() const;
  /// U with U U' = K for one kernel, with at most `max_columns` columns.
  [[nodiscard]] Matrix<double> kernel_factor(const BlockKernel& kernel, Index max_columns) const;
  /// Sets the kernels, and the basis L by a pivoted Cholesky decomposition of the sum of their covariances.
  void set_kernels(const std::vector<BlockKernel>& block_kernels);
  /// Sets the kernels of the weight and optionally the square of one column, each with one variance for all columns.
  /// Categorical columns and missing values keep their levels.
  void set_straight_kernels(bool has_squares);
};

/// The sums of all terms: H = L'Phi'W Phi L of centered basis functions, grown as terms are added. The Gram matrix of
/// two terms is projected on their bases right after its accumulation, so that it is not stored. Runs on all threads of
/// the pool; the result does not depend on their number.
class TermSums {
 public:
  explicit TermSums(ThreadPool& pool) : pool_(pool) {}

  /// Updates H for `terms`. The first terms are those at `kept` (indices into the terms of the last call), with the
  /// same row weights.
  void update(const std::vector<std::unique_ptr<Term>>& terms, const std::vector<Index>& kept, const WorkingRows& rows);
  /// Computes the sums that depend on z.
  void update_targets(const std::vector<std::unique_ptr<Term>>& terms, const WorkingRows& rows);

  [[nodiscard]] const CenteredSums& sums() const { return sums_; }
  /// First coefficient of each term, and the total number of coefficients.
  [[nodiscard]] const std::vector<Index>& offsets() const { return offsets_; }
  /// L' times the weighted mean of the basis functions, for all terms.
  [[nodiscard]] const Vector<double>& centers() const { return centers_; }

 private:
  /// H of the terms from `unchanged` on with all terms, from the Gram matrices of the basis functions of two terms.
  void add_cross_grams(const std::vector<std::unique_ptr<Term>>& terms, std::size_t unchanged, const WorkingRows& rows);
  /// The same from matrix products of the rows of Phi L, which is faster if L has few columns.
  void add_dense_products(const std::vector<std::unique_ptr<Term>>& terms, std::size_t unchanged,
                          const WorkingRows& rows);

  ThreadPool& pool_;
  CenteredSums sums_;
  std::vector<Index> offsets_{0};
  Vector<double> centers_;
};

}  // namespace dyad
