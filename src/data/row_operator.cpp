#include "data/row_operator.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "linalg/row_products.h"

namespace dyad {
namespace {

/// Upper limit of block_rows(), and rows per product Z'Z in add_gram(). Controls the size of temporary blocks.
/// Sensitivity: docs/constants.md.
constexpr Index max_operator_block_rows = 256;

/// Operator of rows that are accessible in memory.
template <typename Scalar>
class StoredRows : public RowOperator {
 public:
  explicit StoredRows(const Rows<Scalar>& rows) : rows_(rows) {
    for (Index i = 0; i < rows.count(); ++i) rows.for_each_entry(i, [&](Index, Scalar) { entries_ += 1; });
  }

  [[nodiscard]] Index count() const override { return rows_.count(); }
  [[nodiscard]] Index dim() const override { return rows_.dim(); }
  [[nodiscard]] double entries() const override { return entries_; }
  [[nodiscard]] Index block_rows() const override {
    return std::min(max_operator_block_rows, rows_per_cache_block(rows_, sizeof(double)));
  }
  [[nodiscard]] double epsilon() const override { return std::numeric_limits<Scalar>::epsilon(); }

  void multiply(IndexRange rows, IndexRange columns, const double* U, Index width, double* out) const override {
    project(submatrix(rows, columns), U, width, out);
  }
  void add_transposed_product(IndexRange rows, IndexRange columns, const double* R, Index width,
                              double* out) const override {
    add_back_projection(submatrix(rows, columns), R, width, out);
  }
  void multiply_squares(IndexRange rows, const double* q, double* out) const override {
    project_squares(rows_.slice(rows.first, rows.count), q, out);
  }
  void add_transposed_squares(IndexRange rows, const double* c, double* out) const override {
    add_back_projected_squares(rows_.slice(rows.first, rows.count), c, 1, out);
  }

  /// Dense rows: the scaled vectors sqrt(weight) z of a block are the rows of Z, and gram += Z'Z. Sparse rows: outer
  /// products of the entries.
  void add_gram(IndexRange rows, const double* weights, Matrix<double>& gram) const override {
    const bool has_squares = gram.rows() > 1 + dim();
    const bool is_sparse = rows_.is_sparse();
    RowMajorMatrix<double> Z(is_sparse ? 0 : max_operator_block_rows, gram.rows());
    std::vector<std::pair<Index, double>> entries;
    for (Index done = 0; done < rows.count; done += max_operator_block_rows) {
      Z.setZero();
      for (Index i = 0; i < std::min(max_operator_block_rows, rows.count - done); ++i) {
        const double root = std::sqrt(weights[done + i]);
        entries.assign(1, {0, root});
        rows_.for_each_entry(rows.first + done + i, [&](Index j, double x) {
          if (x == 0) return;
          entries.emplace_back(1 + j, root * x);
          if (has_squares) entries.emplace_back(1 + dim() + j, root * x * x);
        });
        if (is_sparse)
          for (const auto& [a, left] : entries)
            for (const auto& [b, right] : entries) gram(b, a) += left * right;
        else
          for (const auto& [a, value] : entries) Z(i, a) = value;
      }
      if (!is_sparse) gram.noalias() += Z.transpose() * Z;
    }
  }

  void add_gram_diagonal(IndexRange rows, const double* weights, Vector<double>& diagonal) const override {
    const bool has_squares = diagonal.size() > 1 + dim();
    for (Index i = 0; i < rows.count; ++i) {
      diagonal[0] += weights[i];
      rows_.for_each_entry(rows.first + i, [&](Index j, double x) {
        diagonal[1 + j] += weights[i] * x * x;
        if (has_squares) diagonal[1 + dim() + j] += weights[i] * x * x * x * x;
      });
    }
  }

  void copy_rows(IndexRange rows, double* out) const override {
    std::fill(out, out + rows.count * dim(), 0.0);
    for (Index i = 0; i < rows.count; ++i)
      rows_.for_each_entry(rows.first + i, [&](Index j, double x) { out[i * dim() + j] += x; });
  }
  [[nodiscard]] bool is_dense() const override { return !rows_.is_sparse(); }
  void copy_column(Index j, double* out) const override {
    if (!is_dense()) return RowOperator::copy_column(j, out);
    for (Index i = 0; i < count(); ++i) out[i] = static_cast<double>(rows_.row(i)[j]);
  }

 private:
  [[nodiscard]] Rows<Scalar> submatrix(IndexRange rows, IndexRange columns) const {
    const Rows<Scalar> slice = rows_.slice(rows.first, rows.count);
    return columns.count == dim() ? slice : slice.feature_slice(columns.first, columns.count);
  }

  Rows<Scalar> rows_;
  double entries_ = 0;
};

}  // namespace

void RowOperator::copy_column(Index, double*) const {
  throw std::logic_error("RowOperator::copy_column: the rows are not stored densely");
}

void for_each_row_range(const RowOperator& X, ThreadPool& pool,
                        const std::function<void(int worker, IndexRange rows)>& task) {
  if (X.can_split())
    pool.split(X.count(), task);
  else
    task(0, {0, X.count()});
}

template <typename Scalar>
std::unique_ptr<RowOperator> make_row_operator(const Rows<Scalar>& rows) {
  return std::make_unique<StoredRows<Scalar>>(rows);
}

template std::unique_ptr<RowOperator> make_row_operator(const Rows<float>&);
template std::unique_ptr<RowOperator> make_row_operator(const Rows<double>&);

}  // namespace dyad
