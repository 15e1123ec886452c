#include <stdexcept>

#include <dyad/moment.h>

#include "base/thread_pool.h"

namespace dyad {

void MomentOptions::validate() const {
  shape.validate();
  if (!shape.linear && standardization == Standardization::center)
    throw std::invalid_argument(
        "standardization = center requires shape.linear = true, because centering moves part of x'Mx into w; use "
        "scale");
  ThreadPool::require_valid_count(threads);
}

}  // namespace dyad
