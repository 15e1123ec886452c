#pragma once

#include <functional>
#include <vector>

#include "linalg/matrix.h"

namespace dyad {

/// Sums of centered rows: y = Z gamma + noise, with H = Z'Z, h = Z'y and y'y.
struct CenteredSums {
  RowMajorMatrix<double> H;
  Vector<double> h;
  double yy = 0;
  double weight = 0;  ///< total weight of the rows
};

/// Consecutive coefficients gamma with a common prior, N(0, sum_c theta_c K_c).
struct VarianceBlock {
  struct Component {
    const RowMajorMatrix<double>* factor = nullptr;      ///< U_c with K_c = U_c U_c'; not owned
    const RowMajorMatrix<double>* covariance = nullptr;  ///< K_c; not owned
    double theta = 0;
    Index tie = -1;      ///< components with the same non-negative number share one variance
    double penalty = 0;  ///< h: the update adds 2 h / (theta + VarianceOptions::penalty_offset) to its denominator
  };

  Index first = 0;  ///< first coefficient
  Index count = 0;  ///< number of coefficients
  std::vector<Component> components;
};

struct VarianceOptions {
  Index max_iterations = 25;
  bool is_noise_fixed = false;  ///< true: s2 is given (working responses of classes)
  double max_theta = 1;         ///< upper bound of the variances for the selection of directions
  double penalty_offset = 1e-4;
  double max_growth = 10;  ///< directions are selected for variances that grow by this factor
  std::function<bool()> interrupted;
};

/// Posterior of the coefficients given the variances. With gamma = F u and u ~ N(0, I), the posterior precision of u is
/// A = I + F'HF / s2.
struct VarianceFit {
  Vector<double> gamma;                         ///< posterior means of all coefficients
  std::vector<RowMajorMatrix<double>> factors;  ///< diagonal blocks of F
  RowMajorMatrix<double> root;                  ///< T = L^-1 with L L' = A
  double noise_variance = 0;                    ///< s2
  double effective_dof = 0;                     ///< tr(I - A^-1)
  double log_evidence = 0;                      ///< restricted log-likelihood up to a constant
  double rss = 0;                               ///< residual sum of squares
  Index iterations = 0;
};

/// Estimates the variances of the components and of the noise by restricted maximum likelihood (REML) and solves for
/// the coefficients. The fixed point iteration is theta_c *= (a'K_c a) / tr(K_c R_bb), where a = (h - H gamma) / s2,
/// and R = Z'PZ with P = V^-1 the precision of y. Each block is first reduced to the directions whose prior at an upper
/// bound of its variances contributes to the fit. Updates the variances of `blocks`.
VarianceFit estimate_variances(const CenteredSums& sums, std::vector<VarianceBlock>& blocks, double noise_variance,
                               const VarianceOptions& options);

}  // namespace dyad
