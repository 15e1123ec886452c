#pragma once

#include <cstdint>
#include <optional>

#include <dyad/shape.h>

namespace dyad {

enum class Signs { mixed, positive };
enum class Format { libsvm, csv, tsv, npy };
enum class Features { gaussian, uniform, skewed, rademacher };

/// A problem with a known answer: |w*| = 1, |M*|_2 = 1, eigenvalues (bilinear: singular values) of M* evenly spaced
/// down to 1/condition, rows of independent features with mean 0 and variance 1.
struct PlantedOptions {
  Kind kind = Kind::gfm;
  Index dim = 0;        ///< features of x
  Index right_dim = 0;  ///< bilinear: features of z
  Index rank = 8;
  double condition = 1;
  Signs signs = Signs::mixed;              ///< mixed: alternating
  Features features = Features::gaussian;  ///< skewed: min(N(0,1), 0.1), standardised
  Diagonal diagonal = Diagonal::tied;      ///< zero: without M*_jj x_j^2; free: with square weights of norm 1 instead
  std::optional<double> intercept;         ///< b*; without it none is planted and none is learned
  double noise = 0;                        ///< standard deviation of what is added to each target
  double residual = 0;                     ///< size of all the other eigenvalues of M*
  std::uint64_t seed = 1;

  [[nodiscard]] bool is_bilinear() const { return kind == Kind::bilinear; }
  [[nodiscard]] bool has_weights() const { return kind == Kind::gfm || is_bilinear(); }
  [[nodiscard]] Index left_dim() const { return is_bilinear() ? dim : 0; }  ///< as in Model
  [[nodiscard]] Index total_dim() const { return dim + right_dim; }
  [[nodiscard]] Index kd() const { return rank * total_dim(); }  ///< the unit in which rows are counted
  [[nodiscard]] ModelShape shape() const;                        ///< of the model to estimate
  void validate() const;
};

}  // namespace dyad
