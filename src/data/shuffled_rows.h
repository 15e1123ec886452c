#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <dyad/rows.h>

#include "base/random.h"

namespace dyad {

/// Random permutation of rows, in blocks. Refers to the rows, which the caller keeps alive. Not thread-safe.
template <typename Scalar>
class ShuffledRows {
 public:
  /// `selected`: indices of the rows; empty: all. `stream`: of Random.
  ShuffledRows(const Rows<Scalar>& rows, std::vector<Index> selected, std::uint64_t seed, std::uint64_t stream)
      : rows_(rows), order_(std::move(selected)) {
    if (order_.empty()) {
      order_.resize(static_cast<std::size_t>(rows.count()));
      std::iota(order_.begin(), order_.end(), Index{0});
    }
    Random random(seed, stream);
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[static_cast<std::size_t>(random.bits() % i)]);
  }

  /// Copies the next rows, at most `max_count`, and returns a view that is valid until the next call. No rows: the end.
  Rows<Scalar> next(Index max_count) {
    offsets_.assign(1, 0);
    columns_.clear();
    values_.clear();
    targets_.clear();
    weights_.clear();
    for (; position_ < order_.size() && static_cast<Index>(targets_.size()) < max_count; ++position_) {
      const Index i = order_[position_];
      rows_.for_each_entry(i, [&](Index j, Scalar x) {
        if (rows_.is_sparse()) columns_.push_back(static_cast<std::int32_t>(j));
        values_.push_back(x);
      });
      offsets_.push_back(static_cast<Index>(values_.size()));
      targets_.push_back(rows_.targets()[static_cast<std::size_t>(i)]);
      weights_.push_back(rows_.weight(i));
    }
    const Rows<Scalar> block = rows_.is_sparse() ? Rows<Scalar>::template sparse_unchecked<Index>(
                                                       offsets_, columns_, values_, rows_.dim(), targets_)
                                                 : Rows<Scalar>::dense(values_, rows_.dim(), targets_);
    return block.weighted(weights_);
  }

 private:
  const Rows<Scalar> rows_;
  std::vector<Index> order_;
  std::size_t position_ = 0;
  std::vector<Index> offsets_;
  std::vector<std::int32_t> columns_;
  std::vector<Scalar> values_;
  std::vector<Scalar> targets_;
  std::vector<Scalar> weights_;
};

}  // namespace dyad
