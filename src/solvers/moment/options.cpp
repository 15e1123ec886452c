#include <stdexcept>

#include <dyad/moment.h>

#include "base/thread_pool.h"

namespace dyad {

void MomentOptions::validate() const {
  shape.validate();
  if (!shape.linear && standardise == Standardise::centre)
    throw std::invalid_argument("centring features moves part of x'Mx into w, which is not learned; only scale them");
  ThreadPool::require_possible(threads);
}

}  // namespace dyad
