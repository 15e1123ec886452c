#pragma once

#include <vector>

#include "solvers/sampling/gibbs_sampler.h"
#include "solvers/sampling/variance_model.h"

namespace dyad {

/// Variance of the predictions of rows with unknown features. In each sample, a feature of a group is replaced by one
/// with parameters drawn from the prior of the group, in up to 64 rows per group. Not thread-safe.
class UnknownProbes {
 public:
  /// Copies the rows of the probes. `groups`: groups of the sampler.
  template <typename Scalar>
  UnknownProbes(const Rows<Scalar>& rows, const FeatureGroups& groups, const ModelShape& shape, std::uint64_t seed);

  /// Adds the current sample.
  void add(const GibbsSampler& sampler);

  /// Coefficient t_g of an unknown feature of each group in the variance model: the mean of log v minus the other terms
  /// over the probes of the group. Groups without probes have the largest coefficient of the others.
  [[nodiscard]] std::vector<double> coefficients(const VarianceModel& model) const;

 private:
  struct Entry {
    Index feature;
    double value;
  };
  struct Probe {
    Index group;
    bool is_right;               ///< side of the replaced feature (bilinear)
    std::vector<Entry> entries;  ///< of the row, without features of the group
    double sum = 0;              ///< of the predictions
    double squares = 0;
  };

  [[nodiscard]] double predict(const Probe& probe, const GibbsSampler& sampler, Random& random) const;

  ModelShape shape_;
  Index group_count_;
  std::vector<Probe> probes_;
  double samples_ = 0;
};

}  // namespace dyad
