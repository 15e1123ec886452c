#include <limits>
#include <stdexcept>
#include <string>

#include <dyad/moment.h>

#include "base/workers.h"

namespace dyad {

void MomentOptions::validate() const {
  if (dim < 1 || dim > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("dim must lie in [1, 2^31), got " + std::to_string(dim));
  if (rank < 1 || rank > dim)
    throw std::invalid_argument("rank must lie in [1, dim] = [1, " + std::to_string(dim) + "], got " +
                                std::to_string(rank));
  if (threads < 0 || threads > Workers::most)
    throw std::invalid_argument("threads must lie in [0, " + std::to_string(Workers::most) +
                                "] (0: all cores), got " + std::to_string(threads));
}

}  // namespace dyad
