#include <dyad/explanation.h>

#include <cmath>

#include <gtest/gtest.h>

#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Table with two numeric columns, of which one has missing values, and a categorical one.
struct TableToExplain {
  TableToExplain() {
    Random random(1, 0);
    for (int i = 0; i < 200; ++i) {
      first.push_back(random.normal());
      second.push_back(i % 9 == 0 ? std::nan("") : 3 + 2 * random.normal());
      codes.push_back(static_cast<std::int32_t>(i % 3));
      const double z = std::isnan(second.back()) ? 0 : second.back();
      targets.push_back(5 + first.back() * z + codes.back() * first.back() + 0.1 * random.normal());
      classes.push_back(targets.back() > 5 ? 1 : 0);
    }
    rows.count = 200;
    rows.features = std::vector<ColumnView>{
        {.name = "a", .numbers = first.data()},
        {.name = "b", .numbers = second.data()},
        {.name = "c", .is_categorical = true, .codes = codes.data(), .categories = {"x", "y", "z", "new"}}};
    rows.targets = targets;
  }
  TableToExplain(const TableToExplain&) = delete;
  TableToExplain& operator=(const TableToExplain&) = delete;

  std::vector<double> first;
  std::vector<double> second;
  std::vector<std::int32_t> codes;
  std::vector<double> targets;
  std::vector<double> classes;
  DatasetView rows;
};

void expect_terms_add_up(const Explanation& explanation, const std::vector<double>& predictions) {
  ASSERT_EQ(explanation.predictions.size(), predictions.size());
  ASSERT_EQ(explanation.offsets.size(), predictions.size() + 1);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    double sum = 0;
    for (auto e = static_cast<std::size_t>(explanation.offsets[i]);
         e < static_cast<std::size_t>(explanation.offsets[i + 1]); ++e)
      sum += explanation.values[e];
    EXPECT_NEAR(sum, predictions[i], 1e-9 * std::max(1.0, std::abs(predictions[i])));
    EXPECT_NEAR(explanation.predictions[i], predictions[i], 1e-12 * std::max(1.0, std::abs(predictions[i])));
  }
}

TEST(Explain, TermsAddUpToThePredictionForEverySolver) {
  TableToExplain table;
  for (const Solver solver : {Solver::anova, Solver::sampling, Solver::kalman, Solver::newton})
    for (const bool is_classification : {false, true})
      for (const int hash_bits : {0, 5}) {
        if (solver == Solver::anova && hash_bits > 0) continue;
        TrainOptions options;
        options.data.dataset = &table.rows;
        options.threads = 1;
        options.solver = solver;
        if (solver != Solver::anova) options.rank = 2;
        options.columns.hash_bits = hash_bits;
        table.rows.targets = is_classification ? table.classes : table.targets;
        table.rows.labels = is_classification ? std::vector<std::string>{"n", "p"} : std::vector<std::string>();
        const Predictor predictor = Predictor::from_bytes(train(options).model_bytes);
        table.codes[3] = 3;    // unknown category
        table.first[4] = 100;  // prediction beyond the limits
        std::vector<double> expected(200);
        if (is_classification)
          (void)predictor.predict_log_odds(table.rows, expected, 1);
        else
          (void)predictor.predict(table.rows, expected, {}, 1);
        expect_terms_add_up(predictor.explain(table.rows, 1), expected);
        table.codes[3] = 0;
        table.first[4] = 0.5;
      }
}

TEST(Explain, TermsAreThoseOfColumns) {
  TableToExplain table;
  TrainOptions options;
  options.data.dataset = &table.rows;
  options.threads = 1;
  options.rank = 3;
  options.solver = Solver::newton;
  const Predictor predictor = Predictor::from_bytes(train(options).model_bytes);
  const Explanation explanation = predictor.explain(table.rows, 1);
  int pairs = 0;
  for (const Explanation::TermName& term : explanation.terms) {
    pairs += term.kind == Explanation::TermKind::pair ? 1 : 0;
    for (const std::string& name : {term.left, term.right})
      EXPECT_TRUE(name.empty() || name == "a" || name == "b" || name == "c") << name;
  }
  EXPECT_EQ(pairs, 3);
}

TEST(Explain, BilinearAndMeasurementsAndSparseRows) {
  Random random(2, 0);
  std::vector<double> values;
  std::vector<double> targets;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> indices;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 6; ++j) {
      values.push_back(random.normal());
      indices.push_back(j);
    }
    offsets.push_back(6 * (i + 1));
    const double* x = values.data() + 6 * i;
    targets.push_back((x[0] + x[1]) * (x[3] - x[4]));
  }
  DatasetView rows;
  rows.count = 300;
  rows.targets = targets;
  const MatrixView matrix{.columns = 6, .values = values.data(), .row_stride = 6};
  const SparseView sparse{.columns = 6, .offsets = offsets.data(), .indices = indices.data(), .values = values.data()};
  for (const Kind kind : {Kind::gfm, Kind::bilinear, Kind::sensing})
    for (const bool is_sparse : {false, true}) {
      if (is_sparse)
        rows.features = sparse;
      else
        rows.features = matrix;
      TrainOptions options;
      options.data.dataset = &rows;
      options.threads = 1;
      options.kind = kind;
      options.rank = 2;
      if (kind == Kind::bilinear) options.columns.right = {"3-5"};
      const Predictor predictor = Predictor::from_bytes(train(options).model_bytes);
      std::vector<double> expected(300);
      (void)predictor.predict(rows, expected, {}, 1);
      const Explanation explanation = predictor.explain(rows, 1);
      expect_terms_add_up(explanation, expected);
      for (const Explanation::TermName& term : explanation.terms)
        if (kind == Kind::bilinear && term.kind == Explanation::TermKind::pair) {
          EXPECT_TRUE(term.left < "3" && term.right >= "3") << term.left << " " << term.right;
        }
    }
}

}  // namespace
}  // namespace dyad
