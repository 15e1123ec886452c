#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include <dyad/moment.h>

#include "base/workers.h"

namespace dyad {

void MomentOptions::validate() const {
  if (dim < 1 || dim > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("dim must lie in [1, 2^31), got " + std::to_string(dim));
  if (left_dim < 0 || left_dim >= dim)
    throw std::invalid_argument("left_dim must lie in [0, dim) = [0, " + std::to_string(dim) + "), got " +
                                std::to_string(left_dim));
  const Index most = left_dim > 0 ? std::min(left_dim, dim - left_dim) : dim;
  if (rank < 1 || rank > most)
    throw std::invalid_argument("rank must lie in [1, dim] = [1, " + std::to_string(most) + "], got " +
                                std::to_string(rank));
  if (left_dim > 0 && (positive || diagonal != Diagonal::tied))
    throw std::invalid_argument("a bilinear model has no eigenvalues to keep positive and no diagonal");
  if (!linear && standardise == Standardise::centre)
    throw std::invalid_argument("centring features moves part of x'Mx into w, which is not learned; only scale them");
  Workers::require_possible(threads);
}

}  // namespace dyad
