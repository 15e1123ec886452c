#include "training/state/train_state.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "base/random.h"
#include "support.h"

namespace dyad {
namespace {

std::string trained(bool classes, Solver solver, Precision precision) {
  Random random(5, 1);
  std::vector<double> x(600 * 4);
  std::vector<double> y;
  for (double& value : x) value = random.normal();
  for (std::size_t i = 0; i < x.size(); i += 4) {
    const double f = x[i] + 2 * x[i + 1] * x[i + 2];
    y.push_back(classes ? (f > 0 ? 1 : 0) : f + 0.1 * random.normal());
  }
  DatasetView rows;
  rows.count = static_cast<Index>(y.size());
  rows.features = MatrixView{4, x.data(), 4, 1};
  rows.targets = y;
  if (classes) rows.labels = {"no", "yes"};
  TrainOptions options;
  options.data.dataset = &rows;
  options.rank = 2;
  options.solver = solver;
  options.precision = precision;
  return train(options).model_bytes;
}

template <typename Scalar>
TrainState<Scalar> restored(const std::string& bytes) {
  TrainState<Scalar> state;
  state.file = ModelFile::from_bytes(bytes, "the model");
  state.settings = TrainSettings::load(state.file, "the model");
  state.restore(TrainOptions(), "the model", test::pool());
  return state;
}

TEST(TrainState, SaveAfterRestoreGivesIdenticalBytes) {
  for (const bool classes : {false, true})
    for (const Solver solver : {Solver::automatic, Solver::kalman, Solver::moment}) {
      SCOPED_TRACE(testing::Message() << classes << " " << static_cast<int>(solver));
      const std::string in_double = trained(classes, solver, Precision::double_precision);
      auto state = restored<double>(in_double);
      EXPECT_TRUE(state.file.state.empty());
      state.save();
      EXPECT_EQ(state.file.to_bytes(), in_double);
      const std::string in_single = trained(classes, solver, Precision::single_precision);
      auto single = restored<float>(in_single);
      single.save();
      EXPECT_EQ(single.file.to_bytes(), in_single);
    }
}

TEST(TrainState, MissingStateIsRejected) {
  TrainState<double> state;
  state.file = ModelFile::from_bytes(trained(false, Solver::automatic, Precision::double_precision), "the model");
  state.settings = TrainSettings::load(state.file, "the model");
  EXPECT_EQ(SavedPosterior::load(state.file, "m").median_squared_norm, state.file.state.at("usual_length").front());
  state.file.state.erase("usual_length");
  EXPECT_EQ(SavedPosterior::load(state.file, "m").median_squared_norm, 0);
  EXPECT_THROW(state.restore(TrainOptions(), "m", test::pool()), DataError);
}

TEST(TrainState, EvidenceIsSavedForClassesUnlessRemoved) {
  for (const bool classes : {false, true}) {
    auto state = restored<double>(trained(classes, Solver::automatic, Precision::double_precision));
    state.save();
    EXPECT_EQ(state.file.state.contains("evidence.weight"), classes);
    state.evidence.reset();
    state.save();
    EXPECT_FALSE(state.file.state.contains("evidence.weight"));
  }
}

TEST(TrainState, PosteriorNeedsTheKalmanSolver) {
  const ModelFile file =
      ModelFile::from_bytes(trained(false, Solver::moment, Precision::double_precision), "the model");
  EXPECT_THROW((void)SavedPosterior::load(file, "m"), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
