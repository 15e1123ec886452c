#pragma once

#include <dyad/rows.h>

#include "model/signed_factors.h"
#include "newton/newton_options.h"

namespace dyad {

template <typename Scalar>
struct PhaseStart {
  SignedFactors<Scalar> parameters;
  Index looks = 0;  ///< at all rows
};

/// Phase retrieval, y = (a'x)^2, from kept rows: the signs of a'x are searched for by reflections between the two sets
/// that X a lies in, all X z and all u with |u| = sqrt(y) (relaxed-reflect-reflect). Gauss-Newton makes its answer
/// exact.
template <typename Scalar>
PhaseStart<Scalar> phase_start(const Rows<Scalar>& rows, const NewtonOptions& options);

/// Whether there is the room for it, one number for each pair of features.
bool can_search_phases(Index dim);

}  // namespace dyad
