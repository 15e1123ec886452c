#include "solvers/anova/basis/basis_sums.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "linalg/multiply.h"
#include "solvers/anova/basis/axes.h"
#include "solvers/anova/basis/hat_products.h"

namespace dyad {

BasisSums::BasisSums(const AnovaModel& model) {
  for (const AnovaBlock& block : model.blocks) offsets_.push_back(offsets_.back() + model.block_size(block));
  gram_ = RowMajorMatrix<double>::Zero(size(), size());
  basis_ = Vector<double>::Zero(size());
  moments_ = Vector<double>::Zero(size());
}

void BasisSums::add(const AnovaModel& model, const ColumnTable& table, std::span<const double> targets,
                    std::span<const double> weights, const ResponseLink& link, ThreadPool& pool) {
  std::vector<double> predictor(targets.size());
  model.predict(table, predictor);
  WorkingRows rows;
  link.linearize(targets, weights, predictor, rows);
  std::vector<HatRows> hats;
  for (const AnovaAxis& axis : model.axes) hats.emplace_back(axis, table);
  std::vector<BlockRows> blocks;
  for (const AnovaBlock& block : model.blocks) {
    const auto axis = [&](std::size_t i) { return static_cast<std::size_t>(block.axes[i]); };
    BlockRows& products = blocks.emplace_back();
    products.first = &hats[axis(0)];
    products.first_size = model.axes[axis(0)].size();
    if (!block.is_pair()) continue;
    products.second = &hats[axis(1)];
    products.second_size = model.axes[axis(1)].size();
  }
  std::vector<double> weighted(targets.size());
  std::vector<double> row_weights(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    row_weights[i] = rows.weight(i);
    weighted[i] = row_weights[i] * rows.z[i];
    weight_ += row_weights[i];
    z_ += weighted[i];
    zz_ += weighted[i] * rows.z[i];
  }
  // One task per pair of blocks, so that the order of the additions does not depend on the number of threads.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t a = 0; a < blocks.size(); ++a)
    for (std::size_t b = a; b < blocks.size(); ++b) pairs.emplace_back(a, b);
  std::atomic<std::size_t> next{0};
  pool.run([&](int) {
    for (std::size_t p = next++; p < pairs.size(); p = next++) {
      const auto [a, b] = pairs[p];
      const Index count = blocks[a].size();
      gram_.block(offsets_[a], offsets_[b], count, blocks[b].size()) += cross_gram(blocks[a], blocks[b], rows.weights);
      if (a != b) continue;
      basis_.segment(offsets_[a], count) += basis_moments(blocks[a], row_weights);
      moments_.segment(offsets_[a], count) += basis_moments(blocks[a], weighted);
    }
  });
}

void BasisSums::add(const BasisSums& other) {
  gram_ += other.gram_;
  basis_ += other.basis_;
  moments_ += other.moments_;
  z_ += other.z_;
  zz_ += other.zz_;
  weight_ += other.weight_;
}

CenteredSums BasisSums::project(const std::vector<RowMajorMatrix<double>>& bases, Vector<double>& centers) const {
  Index width = 0;
  for (const RowMajorMatrix<double>& L : bases) width += L.cols();
  CenteredSums sums;
  sums.H.resize(width, width);
  sums.h.resize(width);
  sums.weight = weight_;
  sums.yy = zz_ - z_ * mean();
  centers = Vector<double>(width);
  Index column = 0;
  for (std::size_t b = 0; b < bases.size(); ++b) {
    const RowMajorMatrix<double>& B = bases[b];
    centers.segment(column, B.cols()) = B.transpose() * basis_.segment(offsets_[b], B.rows()) / weight_;
    sums.h.segment(column, B.cols()) = B.transpose() * moments_.segment(offsets_[b], B.rows());
    if (B.cols() > 0) {
      const RowMajorMatrix<double> half = multiply(gram_.block(0, offsets_[b], offsets_[b + 1], B.rows()), B);
      Index row = 0;
      for (std::size_t a = 0; a <= b; ++a) {
        const RowMajorMatrix<double>& A = bases[a];
        if (A.cols() == 0) continue;
        const RowMajorMatrix<double> block = multiply_transposed(A, half.middleRows(offsets_[a], A.rows()));
        sums.H.block(row, column, A.cols(), B.cols()) = block;
        if (a != b) sums.H.block(column, row, B.cols(), A.cols()) = block.transpose();
        row += A.cols();
      }
    }
    column += B.cols();
  }
  sums.h -= z_ * centers;
  sums.H -= weight_ * centers * centers.transpose();
  return sums;
}

double BasisSums::archived_numbers(const AnovaModel& model) {
  double count = 0;
  for (const AnovaBlock& block : model.blocks) count += static_cast<double>(model.block_size(block));
  return count * (count + 1) / 2 + 2 * count + 3;
}

void BasisSums::archive(Archive& archive) {
  archive.number("weight", weight_);
  archive.number("z", z_);
  archive.number("zz", zz_);
  archive.matrix("basis", basis_, size(), 1);
  archive.matrix("moments", moments_, size(), 1);
  // The upper triangle, by rows.
  std::vector<double> upper;
  if (!archive.is_loading())
    for (Index i = 0; i < size(); ++i) upper.insert(upper.end(), gram_.row(i).data() + i, gram_.row(i).data() + size());
  archive.vector("gram", upper, size() * (size() + 1) / 2);
  if (!archive.is_loading()) return;
  const double* source = upper.data();
  for (Index i = 0; i < size(); ++i) {
    std::copy(source, source + size() - i, gram_.row(i).data() + i);
    source += size() - i;
  }
  // Blocks on the diagonal are stored completely.
  for (std::size_t b = 0; b + 1 < offsets_.size(); ++b) {
    const Index count = offsets_[b + 1] - offsets_[b];
    auto block = gram_.block(offsets_[b], offsets_[b], count, count);
    block.triangularView<Eigen::StrictlyLower>() = block.transpose();
  }
}

}  // namespace dyad
