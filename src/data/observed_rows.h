#pragma once

#include <memory>
#include <utility>

#include "data/row_operator.h"

namespace dyad {

// The folder data contains views, blocks and caches of encoded rows, and the linear operator that they define.

/// Rows as a linear operator X, with a target and a weight per row. A weight of 0 excludes a row. Immutable; copies
/// share the operator, targets and weights, and may be used from several threads.
class ObservedRows {
 public:
  ObservedRows(std::shared_ptr<const RowOperator> X, Vector<double> targets, Vector<double> weights)
      : X_(std::move(X)),
        targets_(std::make_shared<const Vector<double>>(std::move(targets))),
        weights_(std::make_shared<const Vector<double>>(std::move(weights))) {}

  /// Copies the targets and weights. Does not own the features; the caller keeps them alive.
  template <typename Scalar>
  ObservedRows(const Rows<Scalar>& rows)  // NOLINT(google-explicit-constructor): solvers accept stored rows directly
      : X_(make_row_operator(rows)) {
    Vector<double> targets(rows.count());
    Vector<double> weights(rows.count());
    for (Index i = 0; i < rows.count(); ++i) {
      targets[i] = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
      weights[i] = static_cast<double>(rows.weight(i));
    }
    targets_ = std::make_shared<const Vector<double>>(std::move(targets));
    weights_ = std::make_shared<const Vector<double>>(std::move(weights));
  }

  /// The same rows with other targets.
  [[nodiscard]] ObservedRows with_targets(Vector<double> targets) const {
    ObservedRows result = *this;
    result.targets_ = std::make_shared<const Vector<double>>(std::move(targets));
    return result;
  }
  /// The same rows with other weights.
  [[nodiscard]] ObservedRows with_weights(Vector<double> weights) const {
    ObservedRows result = *this;
    result.weights_ = std::make_shared<const Vector<double>>(std::move(weights));
    return result;
  }

  [[nodiscard]] const RowOperator& X() const { return *X_; }
  [[nodiscard]] Index count() const { return X_->count(); }
  [[nodiscard]] Index dim() const { return X_->dim(); }
  [[nodiscard]] const Vector<double>& targets() const { return *targets_; }
  [[nodiscard]] const Vector<double>& weights() const { return *weights_; }

 private:
  std::shared_ptr<const RowOperator> X_;
  std::shared_ptr<const Vector<double>> targets_;
  std::shared_ptr<const Vector<double>> weights_;
};

}  // namespace dyad
