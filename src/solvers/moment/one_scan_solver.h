#pragma once

#include <optional>
#include <span>

#include <dyad/moment.h>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "solvers/moment/change_estimator.h"
#include "solvers/moment/moment_sums.h"

namespace dyad {

/// The one-scan update with its parts in the open: what the public solver does in one step, a learner does in several.
template <typename Scalar>
class OneScan {
 public:
  /// Does not own the pool; `options.threads` has no effect.
  OneScan(const MomentOptions& options, Model<Scalar> start, ThreadPool& pool);

  [[nodiscard]] const Model<Scalar>& model() const { return model_; }
  [[nodiscard]] Moments moments() const { return estimator_.moments(); }
  [[nodiscard]] double weight_of_batch() const { return batch_ ? batch_->weight() : 0; }

  /// Adds rows to the batch, and writes y - f(x) to `residuals` unless that is empty.
  void observe(const Rows<Scalar>& rows, std::span<Scalar> residuals = {});

  /// Ends the batch, and puts what it says the model should be into `next`; a step that is not finite leaves it alone.
  BatchReport end_batch(Model<Scalar>& next);

  /// What the batch has summed up so far; it begins again.
  struct Sums {
    MomentSums<Scalar> of_residuals;
    FeatureMoments of_features;

    void archive(Archive& archive);
  };
  [[nodiscard]] Sums take_batch();
  /// A batch that was summed up elsewhere, in place of the one that is open.
  void put_batch(const Sums& sums);

  /// Takes a model of the same shape for the next batch. Not within a batch.
  void set_model(Model<Scalar> model) { model_ = std::move(model); }

  /// Begins the batch again if its sums have overflowed, which makes them useless. True if it did.
  bool drop_overflow();

  void grow(const Growth& growth);
  void archive(Archive& archive);

 private:
  MomentAccumulator<Scalar>& current_batch();
  [[nodiscard]] Model<Scalar> next_model(const MomentSums<Scalar>& batch) const;
  [[nodiscard]] Model<double> step_from(const Model<double>& model, const MomentSums<double>& sums) const;

  MomentOptions options_;
  ThreadPool& pool_;
  Model<Scalar> model_;
  ChangeEstimator estimator_;
  std::optional<MomentAccumulator<Scalar>> batch_;
};

/// The same model with zeros for new features.
template <typename Scalar>
void grow_model(Model<Scalar>& model, const Growth& growth);

template <typename Scalar>
void archive_model(Archive& archive, Model<Scalar>& model);

}  // namespace dyad
