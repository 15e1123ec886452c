#pragma once

#include <exception>
#include <functional>
#include <optional>

#include <dyad/train.h>

#include "base/thread_pool.h"
#include "data/row_block.h"
#include "data/row_cache.h"
#include "encoding/feature_map.h"
#include "serialization/model_file.h"

namespace dyad {

/// Rows of the validation file, encoded by the feature map of training and cached in memory or on disk. The file is
/// read again only if training has added features that occur in it, if the encoding of the target has changed, or if
/// the rows cannot be cached. Not thread-safe.
template <typename Scalar>
class ValidationRows {
 public:
  /// Does not own the options; the caller keeps them alive. Without a validation file, read() and copy() do nothing.
  ValidationRows(const TrainOptions& options, std::function<bool()> interrupted)
      : options_(options), interrupted_(std::move(interrupted)) {}

  /// Reads the file. `map` must have the columns of the first training rows. Targets outside of the target range are
  /// accepted, and these rows do not determine the task. Throws DataError if the file has no rows, or a row that does
  /// not fit the map or the precision. After an interruption the cache is empty.
  void read(FeatureMap& map);

  /// A copy that train_multi_pass() may scale; null if there are no rows. Throws PrivateFileError if the rows did not
  /// fit on disk.
  [[nodiscard]] std::optional<RowCache<Scalar>> copy(FeatureMap& map);

  /// Metrics of a model, equal to those of evaluate(); null if interrupted. Throws as evaluate() does.
  [[nodiscard]] std::optional<Metrics> measure(ModelFile file, ThreadPool& pool);

 private:
  [[nodiscard]] bool is_current(const FeatureMap& map) const;
  void cache_rows(const RowBlock<double>& block);
  [[nodiscard]] std::optional<Metrics> measure_cached(const ModelFile& file, ThreadPool& pool);

  const TrainOptions& options_;
  std::function<bool()> interrupted_;
  std::optional<RowCache<double>> rows_;  ///< null: not read, or not cached
  Target target_;                         ///< target of the map at the time of the last read()
  Index features_ = 0;                    ///< number of features seen by the map at that time
  Index dim_ = 0;                         ///< dimension of the map at that time
  bool has_unknown_cells_ = false;        ///< some cached row has a category that the map did not contain
  std::exception_ptr failure_;            ///< PrivateFileError of the last read()
};

}  // namespace dyad
