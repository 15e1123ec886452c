#pragma once

#include <functional>
#include <limits>
#include <memory>

#include <dyad/rows.h>

#include "base/thread_pool.h"
#include "linalg/matrix.h"

namespace dyad {

/// Linear operator X with one row per observation and one column per feature: the products that iterative solvers need,
/// in double precision. Products are `const` and may run on several threads at once.
///
/// Rows are passed as a range, so that a solver can apply X and X' to a block that stays in a core's cache. An operator
/// that is only fast for all rows (FFT, distributed rows) returns false from `can_split`, and gets the range of all
/// rows.
class RowOperator {
 public:
  virtual ~RowOperator() = default;

  [[nodiscard]] virtual Index count() const = 0;
  [[nodiscard]] virtual Index dim() const = 0;
  /// Multiplications per column of a product.
  [[nodiscard]] virtual double entries() const = 0;
  /// Number of rows per range with which `multiply` followed by `add_transposed_product` is fastest.
  [[nodiscard]] virtual Index block_rows() const = 0;
  /// False: all products require the range of all rows.
  [[nodiscard]] virtual bool can_split() const { return true; }
  /// Relative rounding error of the entries of X and of the targets.
  [[nodiscard]] virtual double epsilon() const { return std::numeric_limits<double>::epsilon(); }

  /// out = X U, with the given rows and columns of X. U is columns.count x width, out is rows.count x width, row-major.
  virtual void multiply(Share rows, Share columns, const double* U, Index width, double* out) const = 0;
  /// out += X' R, with the given rows and columns of X. R is rows.count x width, out is columns.count x width,
  /// row-major.
  virtual void add_transposed_product(Share rows, Share columns, const double* R, Index width, double* out) const = 0;
  /// out = (X o X) q and out += (X o X)' c, with the element-wise squares of the given rows.
  virtual void multiply_squares(Share rows, const double* q, double* out) const = 0;
  virtual void add_transposed_squares(Share rows, const double* c, double* out) const = 0;

  /// gram += sum_i weights[i] z_i z_i' over the given rows, with z = (1, x), or z = (1, x, x^2) if `gram` has 1 + 2 dim
  /// rows. weights[0] is that of the first row of the range.
  virtual void add_gram(Share rows, const double* weights, Small<double>& gram) const = 0;
  /// The diagonal of the same.
  virtual void add_gram_diagonal(Share rows, const double* weights, Vector<double>& diagonal) const = 0;

  /// Whether X is stored densely, so that `copy_column` is available.
  [[nodiscard]] virtual bool is_dense() const { return false; }
  /// Copies column j of all rows. Throws std::logic_error if X is not stored densely.
  virtual void copy_column(Index j, double* out) const;
};

/// Calls task(worker, rows) with one even share of the rows per worker, or with all rows if X cannot split them.
void for_each_share(const RowOperator& X, ThreadPool& pool, const std::function<void(int worker, Share rows)>& task);

/// Rows that are stored in memory or mapped from a file, dense or sparse. Does not own them. Rows of floats are
/// converted on the fly (rows/products.h).
template <typename Scalar>
std::unique_ptr<RowOperator> make_row_operator(const Rows<Scalar>& rows);

}  // namespace dyad
