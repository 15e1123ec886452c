#pragma once

#include <dyad/evaluate.h>
#include <dyad/explanation.h>

#include "inference/error_bars.h"
#include "serialization/model_file.h"

namespace dyad {

/// Terms of the predictions of rows in memory. `error_bars`: of the model; nullptr unless
/// ErrorBars::predicts_by_posterior().
Explanation explain(ModelFile& file, const ErrorBars* error_bars, const DatasetView& rows, int threads,
                    const PredictHooks& hooks);

}  // namespace dyad
