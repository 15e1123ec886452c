#pragma once

#include <memory>
#include <vector>

#include "solvers/anova/anova_fit.h"
#include "solvers/anova/terms.h"

namespace dyad {

/// Variances of the kernels of the terms, whose coefficients start at `offsets`.
std::vector<VarianceBlock> make_variance_blocks(const std::vector<std::unique_ptr<Term>>& terms,
                                                const std::vector<Index>& offsets);
/// Options for the estimation of variances, without the number of iterations. `scale`: AnovaPrior::scale.
VarianceOptions make_variance_options(const AnovaOptions& options, double scale);
/// Root mean square error of other rows by generalized cross-validation (Craven and Wahba 1979), for rows with this
/// total weight; NaN for classes.
double held_out_loss(const VarianceFit& fit, double weight, const AnovaOptions& options);
/// Copies the estimated variances back to the terms.
void set_variances(const std::vector<VarianceBlock>& blocks, const std::vector<std::unique_ptr<Term>>& terms);

/// The model and the prior of fitted terms: axes, functions and posterior covariance. `offsets`: first coefficient of
/// each term. `centers`: weighted mean of L'phi. The caller sets the intercept, the noise variance and the scale.
AnovaFit assemble_fit(const std::vector<std::unique_ptr<Term>>& terms, const std::vector<Index>& offsets,
                      const CenteredSums& sums, const Vector<double>& centers, const VarianceFit& fit);

}  // namespace dyad
