#pragma once

#include "solvers/gauss_newton/gauss_newton.h"

namespace dyad {

/// Fit that excludes outliers.
struct RobustFit {
  SignedFactors<double> parameters;
  Vector<double> weights;  ///< of the rows, times Tukey's weights; 0: excluded
  double scale = 0;        ///< robust standard deviation of the residuals
  Index passes = 0;        ///< passes over all rows
};

/// Whether the residuals of a fit with at least two rows per unknown have heavier tails than normal noise: two rows,
/// and more than 0.1% of the rows, are beyond five robust standard deviations of the noise. The false-alarm rate for
/// normal noise is below 1e-4. `unknowns`: number of fitted parameters, for the degrees of freedom of the standard
/// deviation.
bool has_heavy_tails(const Vector<double>& residuals, const ObservedRows& rows, Index unknowns);

/// Weights with those of outliers set to 0. Rows with |r| > 4.685 robust standard deviations are outliers if they are
/// separated from the other rows: most of them are beyond 10 standard deviations, and they are fewer than 30% of the
/// rows. The residuals of a model of too small a rank have heavy tails as well, but a continuous distribution.
Vector<double> exclude_outliers(const Vector<double>& residuals, const ObservedRows& rows, Index unknowns);

/// Targets that are clipped to the median plus or minus 2.5 robust standard deviations, so that outliers have a bounded
/// effect on a start.
Vector<double> clip_targets(const ObservedRows& rows);

/// M-estimate by iteratively reweighted least squares (Huber 1981, section 7.8) from `start`: first with the weights of
/// a Student t distribution of 4 degrees of freedom, then with Tukey's biweight with constant 4.685. The scale is
/// estimated from the residuals before each reweighting.
RobustFit fit_robustly(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                       const SignedFactors<double>& start);

}  // namespace dyad
