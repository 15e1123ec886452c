#include <algorithm>
#include <atomic>
#include <cmath>

#include "linalg/multiply.h"
#include "solvers/anova/terms.h"

namespace dyad {
namespace {

/// Sums use matrix products of all rows if the terms have at most this number of columns on average. With c columns a
/// row takes about c^2 multiply-adds per pair of terms at 30 per ns, beside up to 16 at 1.5 per ns for the Gram matrix
/// of the basis functions.
constexpr Index max_dense_columns_per_term = 12;

}  // namespace

void TermSums::update(const std::vector<std::unique_ptr<Term>>& terms, const std::vector<Index>& kept,
                      const WorkingRows& rows) {
  // Members are moved from before they are resized: if an allocation fails, Eigen 3.4.0 frees resized storage twice.
  const RowMajorMatrix<double> old_H = std::move(sums_.H);
  const Vector<double> old_centers = std::move(centers_);
  const std::vector<Index> old_offsets = offsets_;
  const std::size_t unchanged = kept.size();
  offsets_.assign(1, 0);
  for (const auto& term : terms) offsets_.push_back(offsets_.back() + term->basis.cols());
  const Index width = offsets_.back();
  centers_.resize(width);
  sums_.H.resize(width, width);
  for (std::size_t t = 0; t < unchanged; ++t) {
    const Index count = terms[t]->basis.cols();
    const auto source = static_cast<std::size_t>(kept[t]);
    centers_.segment(offsets_[t], count) = old_centers.segment(old_offsets[source], count);
    for (std::size_t other = 0; other < unchanged; ++other)
      sums_.H.block(offsets_[t], offsets_[other], count, terms[other]->basis.cols()) = old_H.block(
          old_offsets[source], old_offsets[static_cast<std::size_t>(kept[other])], count, terms[other]->basis.cols());
  }
  const std::vector<double> ones(rows.weights.empty() ? rows.z.size() : 0, 1.0);
  const std::span<const double> weights = rows.weights.empty() ? std::span<const double>(ones) : rows.weights;
  std::atomic<std::size_t> next{unchanged};
  pool_.run([&](int) {
    for (std::size_t t = next++; t < terms.size(); t = next++)
      centers_.segment(offsets_[t], terms[t]->basis.cols()) =
          terms[t]->basis.transpose() * basis_moments(terms[t]->rows(), weights) / rows.total_weight;
  });
  if (width <= max_dense_columns_per_term * std::ssize(terms))
    add_dense_products(terms, unchanged, rows);
  else
    add_cross_grams(terms, unchanged, rows);
}

void TermSums::add_cross_grams(const std::vector<std::unique_ptr<Term>>& terms, std::size_t unchanged,
                               const WorkingRows& rows) {
  // Pairs of terms of which at least one is new.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t b = unchanged; b < terms.size(); ++b)
    for (std::size_t a = 0; a <= b; ++a) pairs.emplace_back(a, b);
  std::atomic<std::size_t> next{0};
  pool_.run([&](int) {
    for (std::size_t i = next++; i < pairs.size(); i = next++) {
      const auto [a, b] = pairs[i];
      const RowMajorMatrix<double>& A = terms[a]->basis;
      const RowMajorMatrix<double>& B = terms[b]->basis;
      if (A.cols() == 0 || B.cols() == 0) continue;
      const RowMajorMatrix<double> gram = cross_gram(terms[a]->rows(), terms[b]->rows(), rows.weights);
      const RowMajorMatrix<double> half = multiply(gram, B);
      RowMajorMatrix<double> block = -rows.total_weight * centers_.segment(offsets_[a], A.cols()) *
                                     centers_.segment(offsets_[b], B.cols()).transpose();
      gemm<double>(A.cols(), B.cols(), A.rows(), 1, operand(A, Operation::transpose), operand(half), 1, block.data(),
                   block.cols());
      sums_.H.block(offsets_[a], offsets_[b], A.cols(), B.cols()) = block;
      if (a != b) sums_.H.block(offsets_[b], offsets_[a], B.cols(), A.cols()) = block.transpose();
    }
  });
}

void TermSums::add_dense_products(const std::vector<std::unique_ptr<Term>>& terms, std::size_t unchanged,
                                  const WorkingRows& rows) {
  // Rows per product, enough for the rate of matrix products, and columns of H per task.
  constexpr Index chunk_rows = 1024;
  constexpr Index task_columns = 192;
  const Index width = offsets_.back();
  const Index old_width = offsets_[unchanged];
  const auto count = static_cast<Index>(rows.z.size());
  RowMajorMatrix<double>& H = sums_.H;
  H.bottomRows(width - old_width).setZero();
  RowMajorMatrix<double> Z(std::min(chunk_rows, count), width);
  for (Index first = 0; first < count; first += chunk_rows) {
    const Index chunk = std::min(chunk_rows, count - first);
    std::atomic<std::size_t> next_term{0};
    pool_.run([&](int) {
      for (std::size_t t = next_term++; t < terms.size(); t = next_term++) {
        const Index columns = terms[t]->basis.cols();
        auto target = Z.block(0, offsets_[t], chunk, columns);
        target.rowwise() = -centers_.segment(offsets_[t], columns).transpose();
        add_basis_rows(terms[t]->rows(), first, terms[t]->basis, target);
        if (!rows.weights.empty())
          for (Index i = 0; i < chunk; ++i)
            target.row(i) *= std::sqrt(rows.weights[static_cast<std::size_t>(first + i)]);
      }
    });
    // Rows [top, top + height) of H up to the diagonal.
    std::atomic<Index> next_top{old_width};
    pool_.run([&](int) {
      for (Index top = next_top.fetch_add(task_columns); top < width; top = next_top.fetch_add(task_columns)) {
        const Index height = std::min(task_columns, width - top);
        gemm<double>(height, top + height, chunk, 1, {Z.data() + top, width, Operation::transpose}, {Z.data(), width},
                     1, H.data() + top * width, width);
      }
    });
  }
  for (Index i = old_width; i < width; ++i) H.col(i).head(i) = H.row(i).head(i).transpose();
}

void TermSums::update_targets(const std::vector<std::unique_ptr<Term>>& terms, const WorkingRows& rows) {
  std::vector<double> centered(rows.z.size());
  sums_.yy = 0;
  sums_.weight = rows.total_weight;
  for (std::size_t i = 0; i < centered.size(); ++i) {
    const double residual = rows.z[i] - rows.mean;
    centered[i] = rows.weight(i) * residual;
    sums_.yy += centered[i] * residual;
  }
  sums_.h = Vector<double>(offsets_.back());
  std::atomic<std::size_t> next{0};
  pool_.run([&](int) {
    for (std::size_t t = next++; t < terms.size(); t = next++)
      sums_.h.segment(offsets_[t], terms[t]->basis.cols()) =
          terms[t]->basis.transpose() * basis_moments(terms[t]->rows(), centered);
  });
}

}  // namespace dyad
