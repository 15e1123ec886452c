#include "distributed/request.h"

namespace dyad {
namespace {

/// Every tenth row by hash is held out.
constexpr std::uint64_t held_out_interval = 10;

/// Quantile of a hash, which is uniform over 64 bits.
double quantile_of(std::uint64_t hash) {
  constexpr double hash_count = 18446744073709551616.0;  // 2^64
  return static_cast<double>(hash) / hash_count;
}

}  // namespace

void Request::archive(Archive& archive) {
  archive.choice("about", type, Type::anova_sums);
  archive.choice("held_out", held_out_use, HeldOutUse::only);
  archive.number("from", min_quantile);
  archive.number("to", max_quantile);
  archive.number("held_from", held_out_from);
  archive.number("has_range", has_range);
  archive.number("with_squares", has_squares);
}

bool Request::is_held_out(std::uint64_t hash) const {
  return hash % held_out_interval == 0 && quantile_of(hash) >= held_out_from;
}

bool Request::uses_row(std::uint64_t hash) const {
  const double quantile = quantile_of(hash);
  if (quantile < min_quantile || (quantile >= max_quantile && max_quantile < 1)) return false;
  return held_out_use == HeldOutUse::included || is_held_out(hash) == (held_out_use == HeldOutUse::only);
}

void archive_parameters(Archive& archive, SignedFactors<double>& parameters, Index dim, Index rank) {
  archive.choice("diagonal", parameters.diagonal, Diagonal::free);
  archive.number("intercept", parameters.intercept);
  archive.matrix("weights", parameters.weights, dim, 1);
  archive.matrix("squares", parameters.squares, parameters.diagonal == Diagonal::free ? dim : 0, 1);
  archive.matrix("A", parameters.A, dim, rank);
  archive.matrix("signs", parameters.signs, rank, 1);
}

void archive_parameter_vector(Archive& archive, ParameterVector& t, Index dim, Index rank, Diagonal diagonal) {
  archive.number("intercept", t.intercept);
  archive.matrix("features", t.features, dim, rank + 1);
  archive.matrix("squares", t.squares, diagonal == Diagonal::free ? dim : 0, 1);
}

}  // namespace dyad
