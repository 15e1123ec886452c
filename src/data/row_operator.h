#pragma once

#include <functional>
#include <limits>
#include <memory>

#include <dyad/rows.h>

#include "base/thread_pool.h"
#include "linalg/matrix.h"

namespace dyad {

/// Linear operator X (count x dim) with one row per observation and one column per feature. Provides the products that
/// iterative solvers need, in double precision. Products are const and may run on several threads at once.
///
/// Products take a range of rows, so that a solver can apply X and X' to a block while it is in the cache of a core.
/// Operators that can only process all rows at once (FFT, distributed rows) return false from can_split(); callers then
/// pass the range of all rows.
class RowOperator {
 public:
  virtual ~RowOperator() = default;

  [[nodiscard]] virtual Index count() const = 0;
  [[nodiscard]] virtual Index dim() const = 0;
  /// Number of stored entries of X, which is the number of multiplications per column of a product.
  [[nodiscard]] virtual double entries() const = 0;
  /// Recommended number of rows per range for multiply() followed by add_transposed_product().
  [[nodiscard]] virtual Index block_rows() const = 0;
  /// Returns false if products require the range of all rows.
  [[nodiscard]] virtual bool can_split() const { return true; }
  /// Relative rounding error of the entries of X and of the targets.
  [[nodiscard]] virtual double epsilon() const { return std::numeric_limits<double>::epsilon(); }

  /// out = X U, with the given rows and columns of X. U is columns.count x width, out is rows.count x width, row-major.
  virtual void multiply(IndexRange rows, IndexRange columns, const double* U, Index width, double* out) const = 0;
  /// out += X' R, with the given rows and columns of X. R is rows.count x width, out is columns.count x width,
  /// row-major.
  virtual void add_transposed_product(IndexRange rows, IndexRange columns, const double* R, Index width,
                                      double* out) const = 0;
  /// out = (X o X) q, where X o X contains the squared entries of the given rows. out has rows.count numbers.
  virtual void multiply_squares(IndexRange rows, const double* q, double* out) const = 0;
  /// out += (X o X)' c over the given rows. c has rows.count numbers, out has dim() numbers.
  virtual void add_transposed_squares(IndexRange rows, const double* c, double* out) const = 0;

  /// gram += sum_i weights[i] z_i z_i' over the given rows, with z = (1, x), or z = (1, x, x o x) if `gram` has 1 + 2
  /// dim rows. weights[0] belongs to the first row of the range.
  virtual void add_gram(IndexRange rows, const double* weights, Matrix<double>& gram) const = 0;
  /// Adds the diagonal of the matrix of add_gram().
  virtual void add_gram_diagonal(IndexRange rows, const double* weights, Vector<double>& diagonal) const = 0;

  /// Writes the given rows of X as a dense row-major matrix, rows.count x dim().
  virtual void copy_rows(IndexRange rows, double* out) const = 0;

  /// Returns true if X is stored densely. copy_column() requires it.
  [[nodiscard]] virtual bool is_dense() const { return false; }
  /// Copies column j of all rows. Throws std::logic_error if X is not stored densely.
  virtual void copy_column(Index j, double* out) const;
};

/// Calls task(worker, rows) with one range of nearly equal size per worker, or once with all rows if
/// X.can_split() is false.
void for_each_row_range(const RowOperator& X, ThreadPool& pool,
                        const std::function<void(int worker, IndexRange rows)>& task);

/// Operator of dense or sparse rows in memory or in a mapped file. Does not own the rows; the caller keeps them alive.
/// Float rows are converted to double in each product (linalg/row_products.h).
template <typename Scalar>
std::unique_ptr<RowOperator> make_row_operator(const Rows<Scalar>& rows);

}  // namespace dyad
