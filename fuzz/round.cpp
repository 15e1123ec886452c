#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>

#include <dyad/error.h>
#include <dyad/evaluate.h>
#include <dyad/train.h>

#include "predictions.h"
#include "scratch_folder.h"
#include "serialization/model_file.h"

namespace dyad::fuzz {
namespace {

/// Options of training, one or two bytes per option.
TrainOptions options_from(OptionBytes& bytes) {
  TrainOptions options;
  constexpr std::array formats{Format::csv, Format::libsvm, Format::tsv};
  options.data.format = formats[static_cast<std::size_t>(bytes.next(3))];
  constexpr std::array kinds{Kind::gfm, Kind::sensing, Kind::phase, Kind::bilinear};
  options.kind = kinds[static_cast<std::size_t>(bytes.next(4))];
  if (options.kind != Kind::phase) options.rank = 1 + bytes.next(3);
  constexpr std::array solvers{Solver::automatic, Solver::kalman, Solver::moment, Solver::newton, Solver::variational};
  options.solver = solvers[static_cast<std::size_t>(bytes.next(5))];
  constexpr std::array diagonals{Diagonal::tied, Diagonal::zero, Diagonal::free};
  if (options.kind == Kind::gfm && bytes.next_flag())
    options.diagonal = diagonals[static_cast<std::size_t>(bytes.next(3))];
  options.precision = bytes.next_flag() ? Precision::single_precision : Precision::double_precision;
  if (bytes.next_flag()) options.columns.task = bytes.next_flag() ? Task::classification : Task::regression;
  if (bytes.next_flag()) options.columns.hash_bits = 1 + bytes.next(4);
  if (options.kind == Kind::bilinear) options.columns.right = {options.data.format == Format::libsvm ? "3-" : "b"};
  if (bytes.next_flag()) options.columns.categorical = {"a"};
  if (bytes.next_flag()) options.columns.weight = "w";
  if (options.data.format != Format::libsvm) options.columns.target = "y";
  if (bytes.next_flag()) options.half_life = 1 + bytes.next(20);
  if (bytes.next_flag()) options.range = {-1, bytes.next(5)};
  if (bytes.next_flag()) options.passes = 1 + bytes.next(3);
  if (bytes.next_flag()) options.memory = 0;
  if (bytes.next_flag()) options.batch = 1 + bytes.next(8);
  options.checkpoint_every = bytes.next(5);
  options.threads = 1;
  return options;
}

/// Runs the action on a trained model. The only exception allowed is a DataError whose message contains `reason`.
template <typename Action>
void allow_error_with(std::string_view reason, Action&& action) {
  try {
    action();
  } catch (const DataError& error) {
    if (std::string_view(error.what()).find(reason) == std::string_view::npos) throw;
  }
}

/// The summary of training, or nothing if the rows or the options are rejected.
std::optional<TrainSummary> try_train(const TrainOptions& options) {
  try {
    return train(options);
  } catch (const DataError&) {
  } catch (const std::invalid_argument&) {
  }
  return std::nullopt;
}

/// Trains a model, predicts and evaluates the training rows, and resumes training on them. The first bytes of the input
/// are the options, the remaining bytes are the rows.
void run(std::string_view input) {
  static const ScratchFolder folder;
  OptionBytes bytes(input);
  TrainOptions training = options_from(bytes);
  const MemoryFile rows(bytes.remaining());
  training.data.paths = {rows.path()};
  training.model_path = folder.file("model");
  const std::optional<TrainSummary> trained = try_train(training);
  if (!trained) return;
  require(trained->rows > 0, "training reads at least one row");
  require(ModelFile::load(training.model_path).model.is_finite(), "all parameters are finite");

  PredictOptions predicting;
  predicting.data = training.data;
  predicting.model_path = training.model_path;
  predicting.output_path = folder.file("predictions");
  predicting.threads = 1;
  const auto predict_all = [&](bool deviations) {
    predicting.deviations = deviations;
    require(predict(predicting).rows == trained->rows, "all training rows are predicted");
    require_finite_predictions(folder.content("predictions"), trained->rows, deviations);
  };
  predict_all(false);
  allow_error_with("all rows have weight 0",
                   [&] { require(std::isfinite(evaluate(predicting).metrics.value().loss), "the loss is finite"); });
  // The standard deviation of a row far outside of the training data may overflow, which is an error.
  if (training.solver != Solver::moment) allow_error_with("the prediction is not finite", [&] { predict_all(true); });

  TrainOptions resumed;
  resumed.data = training.data;
  resumed.model_path = training.model_path;
  resumed.resume = true;
  resumed.threads = 1;
  require(train(resumed).all_rows == 2 * trained->rows, "resumed training adds to the number of rows");
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  run(text_of(data, size));
  return 0;
}
