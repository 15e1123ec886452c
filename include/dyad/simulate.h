#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <dyad/shape.h>
#include <dyad/types.h>

/// \file
/// Planted problems: random rows whose targets come from a known model.

namespace dyad {

/// Signs of the eigenvalues of M*.
enum class Signs {
  mixed,     ///< alternating
  positive,  ///< all positive
};

/// Distribution of the independent features, all with mean 0 and variance 1.
enum class FeatureDistribution {
  gaussian,    ///< N(0, 1)
  uniform,     ///< uniform on [-sqrt(3), sqrt(3)]
  skewed,      ///< min(N(0, 1), 0.1), standardized
  rademacher,  ///< -1 or 1
};

/// Problem with a known model: |w*| = 1, |M*|_2 = 1, and eigenvalues (bilinear: singular values) of M* that are evenly
/// spaced in absolute value between 1 and 1/condition.
struct PlantedOptions {
  Kind kind = Kind::gfm;                                         ///< of the model
  Index dim = 0;                                                 ///< number of features of x
  Index right_dim = 0;                                           ///< bilinear: number of features of z
  Index rank = 8;                                                ///< k
  double condition = 1;                                          ///< sigma_1 / sigma_k of M*
  Signs signs = Signs::mixed;                                    ///< of the eigenvalues of M*
  FeatureDistribution features = FeatureDistribution::gaussian;  ///< of the rows
  Diagonal diagonal = Diagonal::tied;  ///< zero: M*_jj x_j^2 is omitted; free: replaced by c_j x_j^2 with |c| = 1
  std::optional<double> intercept;     ///< b*; without a value, the model has no intercept
  double noise = 0;                    ///< standard deviation of the Gaussian noise added to each target
  double residual = 0;                 ///< absolute value of the eigenvalues of M* beyond the first k
  double outliers = 0;                 ///< probability of an outlier: 10 standard deviations of y are added to y or
                                       ///< subtracted from it
  std::uint64_t seed = 1;              ///< of the model and the rows

  /// True for x'Mz.
  [[nodiscard]] bool is_bilinear() const { return kind == Kind::bilinear; }
  /// True if the model has linear weights.
  [[nodiscard]] bool has_weights() const { return kind == Kind::gfm || is_bilinear(); }
  /// As Model::left_dim.
  [[nodiscard]] Index left_dim() const { return is_bilinear() ? dim : 0; }
  /// Number of features of a row.
  [[nodiscard]] Index total_dim() const { return dim + right_dim; }
  /// rank x total_dim(), the unit of row counts in the theory.
  [[nodiscard]] Index kd() const { return rank * total_dim(); }
  /// Shape of the model to estimate.
  [[nodiscard]] ModelShape shape() const;
  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

/// Options of simulate().
struct SimulateOptions {
  PlantedOptions problem;          ///< model and rows
  Index rows = 0;                  ///< number of rows to write
  std::string path;                ///< file of the rows; "-": standard output
  Format format = Format::libsvm;  ///< of the rows
  std::string target_path;         ///< npy: file of the targets
  std::string truth_path;          ///< model file for the planted model; empty: not written
  int threads = 0;                 ///< 0: all cores; the written bytes do not depend on it

  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

/// Result of simulate().
struct SimulateSummary {
  Outcome outcome = Outcome::budget;  ///< budget: all rows were written
  Index rows = 0;                     ///< number of rows written
  std::int64_t bytes = 0;             ///< size of the written rows
  double seconds = 0;                 ///< elapsed time
  std::int64_t peak_rss_bytes = 0;    ///< peak resident set of the process
};

/// Callbacks of simulate().
struct SimulateHooks {
  std::function<void(const SimulateSummary&)> progress;  ///< called after every block
  std::function<bool()> interrupted;                     ///< polled between blocks; true ends the run
};

/// Writes the rows of a planted problem to a file, in constant memory. A file appears under its name only when it is
/// complete.
/// \throws std::invalid_argument for invalid options, std::runtime_error if a file cannot be written
SimulateSummary simulate(const SimulateOptions& options, const SimulateHooks& hooks = {});

}  // namespace dyad
