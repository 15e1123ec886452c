#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include <dyad/class_predictor.h>
#include <dyad/error.h>
#include <dyad/evaluate.h>
#include <dyad/inspect.h>
#include <dyad/train.h>

#include "base/random.h"
#include "serialization/class_models.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

/// Rows of three columns, the last one categorical, and four classes that depend on them.
struct ClassRows {
  explicit ClassRows(Index count, std::uint64_t seed = 1) {
    Random random(seed, 0);
    for (Index i = 0; i < count; ++i) {
      const double x = random.normal();
      const double z = random.normal();
      const auto code = static_cast<std::int32_t>(i % 2);
      const double noise = 0.2 * random.normal();
      first.push_back(x);
      second.push_back(z);
      codes.push_back(code);
      targets.push_back((x * z + noise > 0 ? 1 : 0) + (code == 1 && x > 0 ? 2 : 0));
    }
    rows.count = count;
    rows.features = std::vector<ColumnView>{
        {.name = "x", .numbers = first.data()},
        {.name = "z", .numbers = second.data()},
        {.name = "kind", .is_categorical = true, .codes = codes.data(), .categories = {"a", "b"}}};
    rows.targets = targets;
    rows.labels = {"north", "east", "south", "west"};
  }
  ClassRows(const ClassRows&) = delete;
  ClassRows& operator=(const ClassRows&) = delete;

  [[nodiscard]] std::string csv() const {
    std::ostringstream text;
    text.precision(17);
    text << "x,z,kind,wind\n";
    for (std::size_t i = 0; i < first.size(); ++i)
      text << first[i] << ',' << second[i] << ',' << (codes[i] == 0 ? 'a' : 'b') << ','
           << rows.labels[static_cast<std::size_t>(targets[i])] << '\n';
    return text.str();
  }

  std::vector<double> first;
  std::vector<double> second;
  std::vector<std::int32_t> codes;
  std::vector<double> targets;
  DatasetView rows;
};

TrainOptions kalman_options(const ClassRows& data) {
  TrainOptions options;
  options.data.dataset = &data.rows;
  options.solver = Solver::kalman;
  options.rank = 2;
  options.threads = 1;
  return options;
}

std::vector<double> probabilities_of(const std::string& model, const ClassRows& data) {
  std::vector<double> values(4 * data.first.size());
  (void)ClassPredictor::from_bytes(model).predict(data.rows, values, {}, 1);
  return values;
}

class Classes : public test::TemporaryFolderTest {};

TEST_F(Classes, ProbabilitiesAddUpToOneAndPredictTheClasses) {
  const ClassRows data(600);
  const ClassRows other(300, 2);
  TrainOptions options;
  options.data.dataset = &data.rows;
  options.threads = 1;
  const TrainSummary summary = train(options);
  EXPECT_EQ(summary.classes, data.rows.labels);
  EXPECT_EQ(summary.class_summaries.size(), 4);
  EXPECT_GT(summary.temperature, 0);
  const std::vector<double> probabilities = probabilities_of(summary.model_bytes, other);
  int correct = 0;
  for (std::size_t i = 0; i < other.first.size(); ++i) {
    const auto row = probabilities.begin() + 4 * static_cast<Index>(i);
    EXPECT_NEAR(std::accumulate(row, row + 4, 0.0), 1, 1e-14);
    EXPECT_GE(*std::min_element(row, row + 4), 0);
    correct += std::max_element(row, row + 4) - row == static_cast<Index>(other.targets[i]) ? 1 : 0;
  }
  EXPECT_GT(correct, 240);
  EXPECT_GT(summary.metrics.accuracy, 0.8);
  EXPECT_EQ(summary.metrics.classes.size(), 4);
}

TEST_F(Classes, SoftmaxOfScoresIsTheProbability) {
  const ClassRows data(300);
  const std::string model = train(kalman_options(data)).model_bytes;
  const ClassPredictor predictor = ClassPredictor::from_bytes(model);
  std::vector<double> scores(1200);
  (void)predictor.predict_scores(data.rows, scores, 1);
  const std::vector<double> probabilities = probabilities_of(model, data);
  std::vector<double> log_odds(300);
  (void)predictor.class_model(2).predict_log_odds(data.rows, log_odds, 1);
  for (std::size_t i = 0; i < 300; ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < 4; ++c) sum += std::exp(scores[4 * i + c]);
    for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(probabilities[4 * i + c], std::exp(scores[4 * i + c]) / sum, 1e-12);
    EXPECT_NEAR(scores[4 * i + 2], predictor.temperature() * log_odds[i], 1e-12);
  }
}

TEST_F(Classes, DeviationsAreThoseOfThePerturbedSoftmax) {
  const ClassRows data(300);
  const std::string model = train(kalman_options(data)).model_bytes;
  const ClassPredictor predictor = ClassPredictor::from_bytes(model);
  std::vector<double> values(1200);
  std::vector<double> deviations(1200);
  (void)predictor.predict(data.rows, values, deviations, 1);
  std::vector<double> positive(300);
  std::vector<double> errors(300);
  std::vector<std::vector<double>> variances(4);
  for (std::size_t c = 0; c < 4; ++c) {
    (void)predictor.class_model(c).predict(data.rows, positive, errors, 1);
    for (std::size_t i = 0; i < 300; ++i) {
      const double slope = positive[i] * (1 - positive[i]);
      variances[c].push_back(errors[i] * errors[i] / (slope * slope));
    }
  }
  for (std::size_t i = 0; i < 300; i += 37)
    for (std::size_t c = 0; c < 4; ++c) {
      double variance = 0;  // sum of squared derivatives times variances
      for (std::size_t k = 0; k < 4; ++k) {
        const double derivative = predictor.temperature() * values[4 * i + c] * ((c == k ? 1 : 0) - values[4 * i + k]);
        variance += derivative * derivative * variances[k][i];
      }
      EXPECT_NEAR(deviations[4 * i + c], std::sqrt(variance), 1e-9);
    }
}

TEST_F(Classes, FileGivesTheModelOfTheSameRowsInMemory) {
  const ClassRows data(300);
  TrainOptions options = kalman_options(data);
  const std::string in_memory = train(options).model_bytes;
  options.data.dataset = nullptr;
  options.data.paths = {write("rows.csv", data.csv())};
  options.columns.target = "wind";
  options.model_path = path("model.dyad");
  const TrainSummary summary = train(options);
  EXPECT_EQ(summary.classes, (std::vector<std::string>{"east", "north", "south", "west"}));
  const std::vector<double> expected = probabilities_of(in_memory, data);
  const std::vector<double> found = probabilities_of(content(path("model.dyad")), data);
  const std::size_t order[] = {1, 0, 2, 3};
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i / 4 * 4 + order[i % 4]], 1e-9);

  PredictOptions prediction;
  prediction.data.paths = options.data.paths;
  prediction.model_path = options.model_path;
  prediction.output_path = path("predictions");
  EXPECT_EQ(predict(prediction).classes, summary.classes);
  std::istringstream lines(content(path("predictions")));
  std::size_t cells = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) EXPECT_NEAR(std::stod(cell), found[cells++], 1e-12);
  }
  EXPECT_EQ(cells, found.size());
  const EvaluateSummary evaluated = evaluate(prediction);
  EXPECT_EQ(evaluated.metrics->classes.size(), 4);
  EXPECT_GT(evaluated.metrics->accuracy, 0.5);
  EXPECT_EQ(inspect(options.model_path, 3).classes.size(), 4);
}

TEST_F(Classes, IntegerLabelsNeedTheTask) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 90; ++i) rows += std::to_string(i % 3 + 0.01 * i) + "," + std::to_string(10 * (i % 3)) + "\n";
  TrainOptions options;
  options.data.paths = {write("rows.csv", rows)};
  options.columns.target = "y";
  options.model_path = path("model.dyad");
  options.solver = Solver::kalman;
  EXPECT_EQ(train(options).task, Task::regression);
  options.columns.task = Task::classification;
  EXPECT_EQ(train(options).classes, (std::vector<std::string>{"0", "10", "20"}));
  EXPECT_EQ(ClassPredictor::load(options.model_path).label_type(), "integer");
}

TEST_F(Classes, ResumedTrainingLearnsAllRows) {
  const ClassRows data(400);
  const ClassRows more(400, 5);
  TrainOptions options = kalman_options(data);
  const TrainSummary first = train(options);
  options.data.dataset = &more.rows;
  options.solver.reset();
  options.rank.reset();
  options.resume = true;
  options.model_bytes = first.model_bytes;
  const TrainSummary second = train(options);
  EXPECT_EQ(second.all_rows, 800);
  EXPECT_EQ(second.classes, first.classes);
  EXPECT_GT(ClassModels::from_bytes(second.model_bytes, "model").precision,
            ClassModels::from_bytes(first.model_bytes, "model").precision);
}

TEST_F(Classes, DoNotDependOnThreads) {
  const ClassRows data(300);
  TrainOptions options = kalman_options(data);
  const std::vector<double> expected = probabilities_of(train(options).model_bytes, data);
  options.threads = 2;
  const std::vector<double> found = probabilities_of(train(options).model_bytes, data);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9);
}

TEST_F(Classes, InterruptedRunKeepsTheOldFile) {
  const ClassRows data(300);
  TrainOptions options = kalman_options(data);
  options.model_path = write("model.dyad", "old");
  TrainHooks hooks;
  bool stops = false;
  hooks.start = [&](const TrainStart&) { stops = true; };  // called for the final models
  hooks.interrupted = [&] { return stops; };
  EXPECT_EQ(train(options, hooks).outcome, Outcome::interrupted);
  EXPECT_EQ(content(options.model_path), "old");
}

TEST_F(Classes, InvalidInputIsReported) {
  const ClassRows data(60);
  TrainOptions options = kalman_options(data);
  options.checkpoint_every = 10;
  EXPECT_THROW((void)train(options), std::invalid_argument);
  options.checkpoint_every = 0;
  const std::string model = train(options).model_bytes;
  for (const std::size_t size : {std::size_t{0}, std::size_t{20}, model.size() / 2, model.size() - 1})
    EXPECT_THROW((void)ClassPredictor::from_bytes(model.substr(0, size)), DataError);
  std::string damaged = model;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  EXPECT_THROW((void)ClassPredictor::from_bytes(damaged), DataError);
  EXPECT_THROW((void)ClassPredictor::from_bytes(ClassPredictor::from_bytes(model).labels().front()), DataError);

  PredictOptions prediction;
  prediction.model_path = write("model.dyad", model);
  prediction.data.paths = {write("rows.csv", "x,z,kind,target\n1,2,a,unknown class\n")};
  EXPECT_THROW((void)evaluate(prediction), std::exception);
  std::vector<double> wrong_size(7);
  EXPECT_THROW((void)ClassPredictor::from_bytes(model).predict(data.rows, wrong_size), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
