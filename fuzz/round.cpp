#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>

#include <dyad/data_error.h>
#include <dyad/predict.h>
#include <dyad/train.h>

#include "predictions.h"
#include "scratch_folder.h"
#include "serialization/model_file.h"

namespace dyad::fuzz {
namespace {

TrainOptions options_from(Choices& choices) {
  TrainOptions options;
  constexpr std::array formats{Format::csv, Format::libsvm, Format::tsv};
  options.data.format = formats[static_cast<std::size_t>(choices.among(3))];
  constexpr std::array kinds{Kind::gfm, Kind::sensing, Kind::phase, Kind::bilinear};
  options.kind = kinds[static_cast<std::size_t>(choices.among(4))];
  if (options.kind != Kind::phase) options.rank = 1 + choices.among(3);
  constexpr std::array solvers{Solver::automatic, Solver::kalman, Solver::moment, Solver::newton, Solver::variational};
  options.solver = solvers[static_cast<std::size_t>(choices.among(5))];
  constexpr std::array diagonals{Diagonal::tied, Diagonal::zero, Diagonal::free};
  if (options.kind == Kind::gfm && choices.flag())
    options.diagonal = diagonals[static_cast<std::size_t>(choices.among(3))];
  options.precision = choices.flag() ? Precision::single_precision : Precision::double_precision;
  if (choices.flag()) options.columns.task = choices.flag() ? Task::classification : Task::regression;
  if (choices.flag()) options.columns.hash_bits = 1 + choices.among(4);
  if (options.kind == Kind::bilinear) options.columns.right = {options.data.format == Format::libsvm ? "3-" : "b"};
  if (choices.flag()) options.columns.categorical = {"a"};
  if (choices.flag()) options.columns.weight = "w";
  if (options.data.format != Format::libsvm) options.columns.target = "y";
  if (choices.flag()) options.half_life = 1 + choices.among(20);
  if (choices.flag()) options.range = {-1, choices.among(5)};
  if (choices.flag()) options.passes = 1 + choices.among(3);
  if (choices.flag()) options.memory = 0;
  if (choices.flag()) options.batch = 1 + choices.among(8);
  options.checkpoint_every = choices.among(5);
  options.threads = 1;
  return options;
}

/// What was learned is refused by nobody, but for this reason.
template <typename Action>
void may_refuse_for(std::string_view reason, Action&& action) {
  try {
    action();
  } catch (const DataError& refusal) {
    if (std::string_view(refusal.what()).find(reason) == std::string_view::npos) throw;
  }
}

/// Nothing where the rows or the options are refused.
std::optional<TrainSummary> first_training(const TrainOptions& options) {
  try {
    return train(options);
  } catch (const DataError&) {
  } catch (const std::invalid_argument&) {
  }
  return std::nullopt;
}

/// Learns, predicts what it learned, and goes on learning.
void run(std::string_view input) {
  static const ScratchFolder folder;
  Choices choices(input);
  TrainOptions training = options_from(choices);
  const MemoryFile rows(choices.rest());
  training.data.paths = {rows.path()};
  training.model_path = folder.file("model");
  const std::optional<TrainSummary> learned = first_training(training);
  if (!learned) return;
  require(learned->rows > 0, "who learned, learned from rows");
  require(ModelFile::load(training.model_path).model.is_finite(), "a model is finite");

  PredictOptions predicting;
  predicting.data = training.data;
  predicting.model_path = training.model_path;
  predicting.output_path = folder.file("predictions");
  predicting.threads = 1;
  const auto predict_all = [&](bool deviations) {
    predicting.deviations = deviations;
    require(predict(predicting).rows == learned->rows, "what was learned can be predicted");
    require_finite_predictions(folder.content("predictions"), learned->rows, deviations);
  };
  predict_all(false);
  may_refuse_for("all rows have weight 0",
                 [&] { require(std::isfinite(evaluate(predicting).metrics.value().loss), "the loss is finite"); });
  // The deviation of a row that is very far from all others overflows, and that is told.
  if (training.solver != Solver::moment) may_refuse_for("the prediction is not finite", [&] { predict_all(true); });

  TrainOptions more;
  more.data = training.data;
  more.model_path = training.model_path;
  more.resume = true;
  more.threads = 1;
  require(train(more).all_rows == 2 * learned->rows, "training goes on where it stopped");
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  run(text_of(data, size));
  return 0;
}
