#pragma once

#include <span>

#include "linalg/matrix.h"
#include "solvers/anova/basis/axes.h"

namespace dyad {

/// Basis functions of a block for all rows: those of one axis, or the products of those of two axes. Does not own the
/// basis functions of the axes; the caller keeps them alive.
struct BlockRows {
  const HatRows* first = nullptr;
  const HatRows* second = nullptr;  ///< null: a block of one axis
  Index first_size = 0;
  Index second_size = 1;

  [[nodiscard]] Index size() const { return first_size * second_size; }
};

/// Phi_a' W Phi_b for the basis functions Phi of two blocks and the diagonal matrix W of row weights (empty: identity).
RowMajorMatrix<double> cross_gram(const BlockRows& a, const BlockRows& b, std::span<const double> weights);

/// Phi' z.
Vector<double> basis_moments(const BlockRows& block, std::span<const double> z);

/// out += Phi coefficients.
void add_fitted(const BlockRows& block, const Vector<double>& coefficients, std::span<double> out);

/// out += rows [first, first + out.rows()) of Phi L.
void add_basis_rows(const BlockRows& block, Index first, const RowMajorMatrix<double>& L,
                    Eigen::Ref<RowMajorMatrix<double>> out);

}  // namespace dyad
