#include "distributed/question.h"

namespace dyad {
namespace {

double share_of(std::uint64_t hash) {
  constexpr double all = 18446744073709551616.0;  // 2^64
  return static_cast<double>(hash) / all;
}

}  // namespace

void Question::archive(Archive& archive) {
  archive.choice("about", about, About::precisions);
  archive.choice("held_out", held_out, HeldOut::counts_alone);
  archive.number("from", from);
  archive.number("to", to);
  archive.number("held_from", held_from);
  archive.number("has_range", has_range);
  archive.number("with_squares", squares);
}

bool Question::is_held_out(std::uint64_t hash) const {
  constexpr std::uint64_t one_in = 10;
  return hash % one_in == 0 && share_of(hash) >= held_from;
}

bool Question::counts(std::uint64_t hash) const {
  const double share = share_of(hash);
  if (share < from || (share >= to && to < 1)) return false;
  return held_out == HeldOut::counts || is_held_out(hash) == (held_out == HeldOut::counts_alone);
}

void archive_parameters(Archive& archive, SignedFactors<double>& parameters, Index dim, Index rank) {
  archive.choice("diagonal", parameters.diagonal, Diagonal::free);
  archive.number("intercept", parameters.intercept);
  archive.matrix("weights", parameters.weights, dim, 1);
  archive.matrix("squares", parameters.squares, parameters.diagonal == Diagonal::free ? dim : 0, 1);
  archive.matrix("A", parameters.A, dim, rank);
  archive.matrix("signs", parameters.signs, rank, 1);
}

void archive_direction(Archive& archive, ParameterVector& t, Index dim, Index rank, Diagonal diagonal) {
  archive.number("intercept", t.intercept);
  archive.matrix("features", t.features, dim, rank + 1);
  archive.matrix("squares", t.squares, diagonal == Diagonal::free ? dim : 0, 1);
}

}  // namespace dyad
