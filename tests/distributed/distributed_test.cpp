#include <dyad/parts.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <dyad/data_error.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Rows in compressed form, cut into parts in any way; the first `sample` of them by hash are what a driver begins
/// with.
class Scattered {
 public:
  Scattered(Index count, Index dim, Index entries, bool classes, double noise) : dim_(dim), classes_(classes) {
    Random random(11, 3);
    std::vector<double> w(static_cast<std::size_t>(dim));
    std::vector<double> a(static_cast<std::size_t>(dim));
    for (double& number : w) number = 0.5 * random.normal();
    for (double& number : a) number = 0.7 * random.normal();
    for (Index i = 0; i < count; ++i) {
      double linear = 0;
      double p = 0;
      double own = 0;
      const Index field = dim / entries;
      for (Index e = 0; e < entries; ++e) {
        const auto j =
            static_cast<std::size_t>(e * field + static_cast<Index>(random.uniform() * static_cast<double>(field)));
        const double x = random.normal();
        columns_.push_back(static_cast<std::int32_t>(j));
        values_.push_back(x);
        linear += w[j] * x;
        p += a[j] * x;
        own += a[j] * x * a[j] * x;
      }
      offsets_.push_back(static_cast<std::int64_t>(columns_.size()));
      const double f = 1 + linear - (p * p - own);
      targets_.push_back(classes ? (random.uniform() < 1 / (1 + std::exp(-f)) ? 1.0 : 0.0)
                                 : f + noise * random.normal());
      weights_.push_back(1 + static_cast<double>(i % 3));
    }
  }

  [[nodiscard]] Index count() const { return static_cast<Index>(targets_.size()); }

  [[nodiscard]] MemoryRows rows(Index first, Index count) const {
    MemoryRows rows;
    rows.count = count;
    rows.features = MemorySparse{dim_, offsets_.data() + first, columns_.data(), values_.data()};
    const auto at = static_cast<std::size_t>(first);
    const auto size = static_cast<std::size_t>(count);
    rows.targets = std::span(targets_).subspan(at, size);
    rows.weights = std::span(weights_).subspan(at, size);
    if (classes_) rows.labels = {"no", "yes"};
    return rows;
  }

  /// Only rows with the smallest hashes.
  [[nodiscard]] std::string begun(double share, std::optional<Solver> solver = {}) const {
    const std::vector<std::uint64_t> hashes = row_hashes(rows(0, count()));
    Scattered sample(0, dim_, 1, classes_, 0);
    for (Index i = 0; i < count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (static_cast<double>(hashes[at]) >= share * 0x1p64) continue;
      for (auto e = offsets_[at]; e < offsets_[at + 1]; ++e) {
        sample.columns_.push_back(columns_[static_cast<std::size_t>(e)]);
        sample.values_.push_back(values_[static_cast<std::size_t>(e)]);
      }
      sample.offsets_.push_back(static_cast<std::int64_t>(sample.columns_.size()));
      sample.targets_.push_back(targets_[at]);
      sample.weights_.push_back(weights_[at]);
    }
    const MemoryRows first = sample.rows(0, sample.count());
    TrainOptions options;
    options.data.memory = &first;
    options.rank = 2;
    options.solver = solver;
    if (!solver) options.passes = 1;
    return train(options).model_bytes;
  }

  /// What a driver learns from so many parts, each of which reads its rows in blocks.
  [[nodiscard]] PartsSummary learned(Index parts, Solver solver, double share = 0.2) const {
    const std::string base = begin_parts(begun(share));
    PartsOptions options;
    options.solver = solver;
    options.share = share;
    options.ask = [&](const std::string& question) {
      std::optional<Statistics> sum;
      for (Index p = 0; p < parts; ++p) {
        Part part(base);
        part.ask(question);
        constexpr Index at_once = 700;
        const Index last = count() * (p + 1) / parts;
        for (Index first = count() * p / parts; first < last; first += at_once) {
          const MemoryRows block = rows(first, std::min(at_once, last - first));
          part.add(block, row_hashes(block));
        }
        if (sum)
          *sum += part.answer();
        else
          sum = part.answer();
      }
      return Statistics::from_bytes(sum->to_bytes());
    };
    return learn_from_parts(base, options);
  }

  [[nodiscard]] std::vector<double> predictions(const std::string& model) const {
    std::vector<double> values(targets_.size());
    (void)Predictor::from_bytes(model).predict(rows(0, count()), values);
    return values;
  }

  [[nodiscard]] double loss(const std::string& model) const {
    const std::vector<double> values = predictions(model);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += classes_ ? -std::log(targets_[i] > 0 ? values[i] : 1 - values[i]) : std::pow(values[i] - targets_[i], 2);
    return sum / static_cast<double>(values.size());
  }

  std::vector<double> targets_;

 private:
  Index dim_;
  bool classes_;
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
  std::vector<double> weights_;
};

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(Parts, GaussNewtonGivesTheSameModelForAnyParts) {
  for (const bool classes : {false, true}) {
    const Scattered data(3000, 40, 5, classes, 0.3);
    const std::vector<double> whole = data.predictions(data.learned(1, Solver::newton).model);
    for (const Index parts : {2, 7})
      EXPECT_LT(largest_difference(whole, data.predictions(data.learned(parts, Solver::newton).model)), 1e-9)
          << parts << (classes ? " parts, classes" : " parts");
  }
}

TEST(Parts, OnePassLosesLittleByParts) {
  for (const bool classes : {false, true}) {
    const Scattered data(6000, 40, 5, classes, 0.3);
    const double whole = data.loss(data.learned(1, Solver::kalman).model);
    for (const Index parts : {2, 5}) EXPECT_LT(data.loss(data.learned(parts, Solver::kalman).model), 1.01 * whole);
  }
}

TEST(Parts, GaussNewtonMakesOnePassBetter) {
  const Scattered data(1500, 60, 5, false, 0.1);
  const double begun = data.loss(data.begun(0.2));
  const double one_pass = data.loss(data.learned(2, Solver::kalman).model);
  const PartsSummary both = data.learned(2, Solver::automatic);
  EXPECT_LT(one_pass, begun);
  EXPECT_LT(data.loss(both.model), 0.8 * one_pass);
  EXPECT_LT(both.refined, both.one_pass);
  EXPECT_EQ(both.rows, data.count());
}

TEST(Parts, ErrorBarsAreThoseOfOneProcess) {
  const Scattered data(6000, 30, 5, false, 0.3);
  const auto mean_deviation = [&](const std::string& model) {
    std::vector<double> values(6000);
    std::vector<double> deviations(6000);
    (void)Predictor::from_bytes(model).predict(data.rows(0, 6000), values, deviations);
    return std::accumulate(deviations.begin(), deviations.end(), 0.0) / 6000;
  };
  const double whole = mean_deviation(data.begun(1));
  EXPECT_NEAR(mean_deviation(data.learned(3, Solver::kalman).model), whole, 0.05 * whole);
  EXPECT_NEAR(mean_deviation(data.learned(3, Solver::automatic).model), 0.3, 0.02);
}

TEST(Parts, HashesAreOfTheContentAlone) {
  const std::vector<double> dense{1.5, 0, 2, 0, 0, 3};
  const std::vector<std::int64_t> offsets{0, 2, 3};
  const std::vector<std::int32_t> columns{0, 2, 2};
  const std::vector<double> values{1.5, 2, 3};
  const std::vector<double> targets{1, 2};
  MemoryRows matrix;
  matrix.count = 2;
  matrix.features = MemoryMatrix{3, dense.data(), 3, 1};
  matrix.targets = targets;
  MemoryRows sparse = matrix;
  sparse.features = MemorySparse{3, offsets.data(), columns.data(), values.data()};
  EXPECT_EQ(row_hashes(matrix), row_hashes(sparse));
  EXPECT_NE(row_hashes(matrix)[0], row_hashes(matrix)[1]);
  const std::vector<double> others{1, 3};
  sparse.targets = others;
  EXPECT_EQ(row_hashes(matrix)[0], row_hashes(sparse)[0]);
  EXPECT_NE(row_hashes(matrix)[1], row_hashes(sparse)[1]);
}

TEST(Parts, HashesSpreadEvenly) {
  const Scattered data(20'000, 40, 5, false, 0.3);
  const std::vector<std::uint64_t> hashes = row_hashes(data.rows(0, 20'000));
  const auto low =
      std::count_if(hashes.begin(), hashes.end(), [](auto hash) { return hash < (std::uint64_t{1} << 62); });
  const auto tenth = std::count_if(hashes.begin(), hashes.end(), [](auto hash) { return hash % 10 == 0; });
  EXPECT_NEAR(static_cast<double>(low), 5000, 300);
  EXPECT_NEAR(static_cast<double>(tenth), 2000, 200);
}

TEST(Parts, SampleOfAllRowsLeavesNothingToLearn) {
  const Scattered data(500, 20, 4, false, 0.3);
  const PartsSummary summary = data.learned(2, Solver::kalman, 1);
  EXPECT_LT(largest_difference(data.predictions(summary.model), data.predictions(data.begun(1))), 1e-12);
}

TEST(Parts, OthersAreRefused) {
  const Scattered data(500, 20, 4, false, 0.3);
  EXPECT_THROW((void)begin_parts(data.begun(0.5, Solver::moment)), std::invalid_argument);
  EXPECT_THROW((void)begin_parts("no model"), DataError);
  const std::string base = begin_parts(data.begun(0.5));
  Part part(base);
  EXPECT_THROW(part.ask("no question"), DataError);
  PartsOptions options;
  options.ask = [&](const std::string&) { return Statistics(); };
  EXPECT_THROW((void)learn_from_parts(base, options), std::invalid_argument);
  options.solver = Solver::variational;
  EXPECT_THROW((void)learn_from_parts(base, options), std::invalid_argument);
}

TEST(Parts, AnswersToDifferentQuestionsDoNotAdd) {
  const Scattered data(600, 20, 4, false, 0.3);
  const std::string base = begin_parts(data.begun(0.5));
  std::vector<Statistics> answers;
  PartsOptions options;
  options.share = 0.5;
  options.ask = [&](const std::string& question) {
    Part part(base);
    part.ask(question);
    const MemoryRows all = data.rows(0, 600);
    part.add(all, row_hashes(all));
    answers.push_back(part.answer());
    return answers.back();
  };
  (void)learn_from_parts(base, options);
  ASSERT_GT(answers.size(), 2U);
  EXPECT_THROW(answers[0] += answers[1], std::invalid_argument);
}

}  // namespace
}  // namespace dyad
