#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Rows that are worth a second look, those without weight left out, copied in the layout of the first of them.
template <typename Scalar>
class KeptRows {
 public:
  void append(const Rows<Scalar>& rows) {
    if (count_ == 0) sparse_ = rows.is_sparse();
    for (Index i = 0; i < rows.count(); ++i) {
      if (!(rows.weight(i) > 0)) continue;
      const std::size_t begin = values_.size();
      if (!sparse_) values_.resize(begin + static_cast<std::size_t>(rows.dim()));
      rows.for_each_entry(i, [&](Index j, Scalar x) {
        if (!sparse_) {
          values_[begin + static_cast<std::size_t>(j)] = x;
        } else if (x != 0) {
          columns_.push_back(static_cast<std::int32_t>(j));
          values_.push_back(x);
        }
      });
      if (sparse_) offsets_.push_back(static_cast<Index>(values_.size()));
      weights_.push_back(rows.weight(i));
      targets_.push_back(rows.targets()[static_cast<std::size_t>(i)]);
      ++count_;
    }
  }

  /// Multiplies each feature by its factor.
  void scale(std::span<const double> factors) {
    const std::size_t dim = factors.size();
    for (std::size_t e = 0; e < values_.size(); ++e)
      values_[e] *= static_cast<Scalar>(factors[sparse_ ? static_cast<std::size_t>(columns_[e]) : e % dim]);
  }

  [[nodiscard]] Index count() const { return count_; }

  /// What so many rows like these take.
  [[nodiscard]] static double bytes_for(double rows, double entries_of_row, bool sparse) {
    const double entry =
        static_cast<double>(sizeof(Scalar)) + (sparse ? static_cast<double>(sizeof(std::int32_t)) : 0.0);
    const double of_row = 2 * static_cast<double>(sizeof(Scalar)) + (sparse ? static_cast<double>(sizeof(Index)) : 0.0);
    return rows * (entries_of_row * entry + of_row);
  }

  [[nodiscard]] Rows<Scalar> view(Index dim) const {
    const Rows<Scalar> rows = sparse_ ? Rows<Scalar>::sparse(offsets_, columns_, values_, dim, targets_)
                                      : Rows<Scalar>::dense(values_, dim, targets_);
    return rows.weighted(weights_);
  }

 private:
  Index count_ = 0;
  bool sparse_ = false;
  std::vector<Index> offsets_{0};
  std::vector<std::int32_t> columns_;
  std::vector<Scalar> values_;
  std::vector<Scalar> targets_;
  std::vector<Scalar> weights_;
};

}  // namespace dyad
