#include "solvers/anova/basis/hat_products.h"

#include <limits>

#include <gtest/gtest.h>

#include "solvers/anova/anova_rows.h"
#include "solvers/anova/basis/kernels.h"
#include "solvers/anova/terms.h"

namespace dyad {
namespace {

/// Two numeric columns, the first with missing values, a discrete and a categorical one with unknown categories.
ColumnTable mixed_table(Index count) {
  test::AnovaRows rows = test::uniform_rows(count, 2, 3);
  Random random(4, 0);
  std::vector<double> discrete;
  std::vector<double> categories;
  for (Index i = 0; i < count; ++i) {
    discrete.push_back(std::floor(4 * random.uniform()));
    categories.push_back(std::floor(5 * random.uniform()) - 1);
    if (i % 7 == 0)
      rows.table.columns[0].values[static_cast<std::size_t>(i)] = std::numeric_limits<double>::quiet_NaN();
  }
  rows.add_column().values = discrete;
  rows.add_column(true).values = categories;
  return rows.table;
}

/// Phi as a dense matrix.
Matrix<double> dense_basis(const Term& term, const ColumnTable& table) {
  Matrix<double> Phi = Matrix<double>::Zero(table.count(), term.size());
  const auto value = [&](const FittedAxis& axis, Index i) {
    return table.columns[static_cast<std::size_t>(axis.axis.column)].values[static_cast<std::size_t>(i)];
  };
  const auto dense = [&](const FittedAxis& axis, Index i) {
    Vector<double> row = Vector<double>::Zero(axis.axis.size() + 1);
    const HatWeights hat = axis.axis.evaluate(value(axis, i));
    row[hat.index] += hat.first;
    row[hat.index + 1] += hat.second;
    return Vector<double>(row.head(axis.axis.size()));
  };
  for (Index i = 0; i < table.count(); ++i) {
    const Vector<double> first = dense(*term.first, i);
    if (!term.is_pair()) {
      Phi.row(i) = first;
      continue;
    }
    const Vector<double> second = dense(*term.second, i);
    for (Index a = 0; a < first.size(); ++a) Phi.row(i).segment(a * second.size(), second.size()) = first[a] * second;
  }
  return Phi;
}

class HatProducts : public testing::Test {
 protected:
  HatProducts() {
    for (Index j = 0; j < 4; ++j) terms.emplace_back(axes.get(j, 5));
    for (Index i = 0; i < 4; ++i)
      for (Index j = i + 1; j < 4; ++j)
        terms.emplace_back(axes.get(i, 4), axes.get(j, 5), std::pair<Index, Index>{4, 5});
    Random random(5, 0);
    for (Index i = 0; i < table.count(); ++i) weights.push_back(random.uniform());
  }

  ColumnTable table = mixed_table(200);
  AxisCache axes{table};
  std::vector<Term> terms;
  std::vector<double> weights;
};

TEST_F(HatProducts, CrossGramEqualsBruteForce) {
  for (const Term& a : terms)
    for (const Term& b : terms) {
      const Matrix<double> A = dense_basis(a, table);
      const Matrix<double> B = dense_basis(b, table);
      EXPECT_LT((cross_gram(a.rows(), b.rows(), {}) - A.transpose() * B).cwiseAbs().maxCoeff(), 1e-11);
      EXPECT_LT((cross_gram(a.rows(), b.rows(), weights) - A.transpose() * as_vector(weights).asDiagonal() * B)
                    .cwiseAbs()
                    .maxCoeff(),
                1e-11);
    }
}

TEST_F(HatProducts, MomentsAndFittedValuesEqualBruteForce) {
  Random random(6, 0);
  for (const Term& term : terms) {
    const Matrix<double> Phi = dense_basis(term, table);
    EXPECT_LT((basis_moments(term.rows(), weights) - Phi.transpose() * as_vector(weights)).cwiseAbs().maxCoeff(),
              1e-11);
    const Vector<double> coefficients = random_normal<double>(random, term.size(), 1);
    std::vector<double> fitted(weights.size(), 2.0);
    add_fitted(term.rows(), coefficients, fitted);
    EXPECT_LT(((as_vector(fitted).array() - 2).matrix() - Phi * coefficients).cwiseAbs().maxCoeff(), 1e-12);
    const RowMajorMatrix<double> L = random_normal<double>(random, term.size(), 3);
    RowMajorMatrix<double> rows = RowMajorMatrix<double>::Ones(50, 3);
    add_basis_rows(term.rows(), 20, L, rows);
    EXPECT_LT(((rows.array() - 1).matrix() - Phi.middleRows(20, 50) * L).cwiseAbs().maxCoeff(), 1e-12);
  }
}

TEST_F(HatProducts, KernelsAreCenteredAndScaled) {
  for (const Term& term : terms) {
    if (term.is_pair()) continue;
    const Vector<double>& means = term.first->means;
    for (std::size_t k = 0; k < axis_kernel_count; ++k) {
      const auto& factor = term.first->kernels.factor(static_cast<AxisKernel>(k));
      if (!factor) continue;
      EXPECT_LT((means.transpose() * *factor).norm(), 1e-10);
      EXPECT_NEAR(means.dot(factor->rowwise().squaredNorm()) / means.sum(), 1, 1e-10);
    }
  }
}

TEST_F(HatProducts, FactorsOfTermsReproduceTheirKernels) {
  for (Term& term : terms) {
    term.set_kernels(term.default_kernels());
    ASSERT_FALSE(term.kernels.empty());
    for (const TermKernel& kernel : term.kernels) {
      const Matrix<double> U = term.kernel_factor(kernel.kernel, term.size());
      const Matrix<double> K = U * U.transpose();
      EXPECT_LT((term.basis * kernel.covariance * term.basis.transpose() - K).cwiseAbs().maxCoeff(),
                1e-6 * K.cwiseAbs().maxCoeff());
    }
  }
}

TEST_F(HatProducts, DenseAndCrossGramSumsAgree) {
  // Terms with one column take the path of matrix products; terms with all columns that of Gram matrices.
  WorkingRows rows;
  rows.z.assign(weights.size(), 0.0);
  rows.weights = weights;
  rows.update_mean();
  for (const bool has_all_kernels : {false, true}) {
    std::vector<std::unique_ptr<Term>> list;
    for (const Term& term : terms) {
      list.push_back(std::make_unique<Term>(term));
      std::vector<BlockKernel> kernels = list.back()->default_kernels();
      if (!has_all_kernels) kernels.resize(1);
      list.back()->set_kernels(kernels);
    }
    TermSums sums(test::pool());
    sums.update(list, {}, rows);
    Index column = 0;
    for (std::size_t a = 0; a < list.size(); ++a) {
      const Matrix<double> A = dense_basis(*list[a], table) * list[a]->basis;
      const Vector<double> center = A.transpose() * as_vector(weights) / rows.total_weight;
      const Matrix<double> centered = A.rowwise() - center.transpose();
      const auto block = sums.sums().H.block(column, column, A.cols(), A.cols());
      EXPECT_LT((block - centered.transpose() * as_vector(weights).asDiagonal() * centered).cwiseAbs().maxCoeff(),
                1e-9);
      column += A.cols();
    }
    EXPECT_LT((sums.sums().H - sums.sums().H.transpose()).cwiseAbs().maxCoeff(), 1e-12);
  }
}

}  // namespace
}  // namespace dyad
