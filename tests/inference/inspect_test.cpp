#include "inference/inspect.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <dyad/dataset.h>
#include <dyad/train.h>

#include "base/random.h"
#include "encoding/sources/row_stream.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

class Inspect : public test::TemporaryFolderTest {
 protected:
  /// Table whose target depends on the squares of all numeric columns. `flag` is 0 or 1; `two` is -2, 5 or missing;
  /// `three` is 0, 1 or 2. If `third_flag` is not 0, `flag` has that value in one row.
  [[nodiscard]] std::string table(const std::string& name, int count, std::uint64_t seed, double third_flag = 0) const {
    Random random(seed, 0);
    std::string text = "flag,two,three,number,city,street,y\n";
    for (int i = 0; i < count; ++i) {
      const double flag = i == count / 2 && third_flag != 0 ? third_flag : random.uniform() < 0.3 ? 1 : 0;
      const double two = random.uniform() < 0.6 ? -2 : 5;
      const bool is_missing = random.uniform() < 0.2;
      const auto three = static_cast<int>(3 * random.uniform());
      const double number = 10 + 3 * random.normal();
      const auto city = static_cast<int>(6 * random.uniform());
      const auto street = static_cast<int>(6 * random.uniform());
      const double y = flag * number + (is_missing ? 1 : two * two) + three * three + 0.1 * number * number + city +
                       (city == street ? 2 : 0) + 0.1 * random.normal();
      text += std::to_string(flag) + "," + (is_missing ? "" : std::to_string(two)) + "," + std::to_string(three) + "," +
              std::to_string(number) + ",c" + std::to_string(city) + ",s" + std::to_string(street) + "," +
              std::to_string(y) + "\n";
    }
    return write(name, text);
  }

  [[nodiscard]] TrainOptions options_for(const std::string& file, int hash_bits = 0) const {
    TrainOptions options;
    options.data.paths = {file};
    options.columns.target = "y";
    options.columns.hash_bits = hash_bits;
    options.model_path = path("m.dyad");
    options.rank = 3;
    options.threads = 1;
    return options;
  }

  /// Names of the features with a square. Fails unless the terms reproduce the predictions of the model on `data`.
  static std::set<std::string> checked_squares(ModelFile file, const DataOptions& data) {
    const Inspection terms = inspect(file, 1'000'000);
    FeatureMap& map = file.features;
    std::map<std::string, Index> features;
    for (Index j = 0; j < map.dim(); ++j) features[map.name(j)] = j;
    const auto stream = open_rows(map, {.data = data,
                                        .columns = {},
                                        .targets = TableEncoder::Targets::none,
                                        .unknown = TableEncoder::UnknownFeatures::ignore});
    RowBlock<double> block;
    stream->fill(block, {1'000'000, 1'000'000'000});
    EXPECT_GT(block.count(), 0);
    std::vector<double> predictions(static_cast<std::size_t>(block.count()));
    file.model.predict(block.view(), predictions);
    const std::vector<Scaling> scalings = map.scalings();
    std::vector<double> x(scalings.size());
    for (Index i = 0; i < block.count(); ++i) {
      for (std::size_t j = 0; j < x.size(); ++j) x[j] = scalings[j].center;  // z = 0
      block.view().for_each_entry(i, [&](Index j, double z) {
        const auto at = static_cast<std::size_t>(j);
        x[at] = scalings[at].center + scalings[at].scale * z;
      });
      const auto value = [&](const std::string& name) { return x[static_cast<std::size_t>(features.at(name))]; };
      double y = terms.intercept;
      double size = std::abs(y);
      for (const auto* list : {&terms.weights, &terms.pairs})
        for (const Term& term : *list) {
          const double summand = term.coefficient * value(term.left) * (term.right.empty() ? 1 : value(term.right));
          y += summand;
          size += std::abs(summand);
        }
      const double expected =
          map.target.scaling.center + map.target.scaling.scale * predictions[static_cast<std::size_t>(i)];
      EXPECT_NEAR(y, expected, 1e-9 * size) << "row " << i;
    }
    std::set<std::string> squares;
    for (const Term& term : terms.pairs)
      if (term.left == term.right) squares.insert(term.left);
    return squares;
  }

  [[nodiscard]] std::set<std::string> checked_squares(const std::string& rows) const {
    DataOptions data;
    data.paths = {rows};
    return checked_squares(ModelFile::load(path("m.dyad")), data);
  }
};

using Names = std::set<std::string>;

TEST_F(Inspect, TermsOfTwoValuedColumnsReproducePredictions) {
  for (const Solver solver : {Solver::automatic, Solver::kalman, Solver::moment}) {
    TrainOptions options = options_for(table("rows.csv", 3000, 1));
    options.solver = solver;
    options.diagonal = Diagonal::free;
    (void)train(options);
    EXPECT_EQ(checked_squares(table("fresh.csv", 200, 2)), (Names{"three", "number"}));
  }
}

TEST_F(Inspect, TermsOfHashedFeaturesReproducePredictions) {
  // A slot that a city and a street share has the value 2 in rows with both.
  constexpr int bits = 4;
  (void)train(options_for(table("rows.csv", 3000, 1), bits));
  FeatureMap map = ModelFile::load(path("m.dyad")).features;
  Names expected{"three", "number"};
  for (int city = 0; city < 6; ++city)
    for (int street = 0; street < 6; ++street) {
      const Index slot = map.encode_category(4, "c" + std::to_string(city), false);
      if (slot == map.encode_category(5, "s" + std::to_string(street), false)) expected.insert(map.name(slot));
    }
  ASSERT_GT(expected.size(), 2U);
  EXPECT_EQ(checked_squares(table("fresh.csv", 200, 2)), expected);
}

TEST_F(Inspect, TermsOfLibsvmIndicesReproducePredictions) {
  Random random(1, 0);
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    const bool flag = random.uniform() < 0.5;
    const double number = random.normal();
    const auto pick = static_cast<int>(30 * random.uniform());
    text += std::to_string(flag + number * number + pick % 3 + 0.1 * random.normal()) + (flag ? " 0:1" : "") +
            " 1:" + std::to_string(number) + " " + std::to_string(2 + pick) + ":1 " + std::to_string(32 + pick % 5) +
            ":" + (i % 2 == 0 ? "1" : "2") + "\n";
  }
  for (const int hash_bits : {0, 12}) {
    TrainOptions options = options_for(write("rows.svm", text), hash_bits);
    options.columns.target.clear();
    options.diagonal = Diagonal::free;
    (void)train(options);
    const Names squares = checked_squares(path("rows.svm"));
    EXPECT_EQ(squares.size(), 6U);
    if (hash_bits == 0) {
      EXPECT_EQ(squares, (Names{"1", "32", "33", "34", "35", "36"}));
    }
  }
}

TEST_F(Inspect, TermsOfMatricesReproducePredictions) {
  Random random(1, 0);
  std::vector<double> values;
  std::vector<double> targets;
  for (int i = 0; i < 1000; ++i) {
    const double sign = random.uniform() < 0.2 ? 1 : -1;
    const double number = random.normal();
    values.insert(values.end(), {sign, number, 7});
    targets.push_back(sign * number + number * number + 0.1 * random.normal());
  }
  DatasetView rows;
  rows.count = 1000;
  rows.features = MatrixView{.columns = 3, .values = values.data(), .row_stride = 3};
  rows.targets = targets;
  TrainOptions options;
  options.data.dataset = &rows;
  options.rank = 2;
  options.threads = 1;
  const ModelFile file = ModelFile::from_bytes(train(options).model_bytes, "memory");
  const Names squares = checked_squares(ModelFile::from_bytes(file.to_bytes(), "memory"), options.data);
  EXPECT_FALSE(squares.contains("0"));
  EXPECT_TRUE(squares.contains("1"));
}

TEST_F(Inspect, ThirdValueInResumedRunRestoresSquare) {
  (void)train(options_for(table("rows.csv", 2000, 1)));
  const auto resume = [&](const std::string& file) {
    TrainOptions more;
    more.data.paths = {file};
    more.model_path = path("m.dyad");
    more.resume = true;
    more.threads = 1;
    (void)train(more);
  };
  resume(table("same.csv", 500, 2));
  EXPECT_EQ(checked_squares(path("same.csv")), (Names{"three", "number"}));
  resume(table("third.csv", 500, 3, 0.5));
  EXPECT_EQ(checked_squares(path("third.csv")), (Names{"flag", "three", "number"}));
  resume(table("later.csv", 500, 4));
  EXPECT_EQ(checked_squares(path("later.csv")), (Names{"flag", "three", "number"}));
}

TEST_F(Inspect, ModelsWithoutStoredValuesListSquares) {
  (void)train(options_for(table("rows.csv", 2000, 1)));
  ModelFile file = ModelFile::load(path("m.dyad"));
  file.features.clear_values();
  file.save(path("m.dyad"));
  EXPECT_EQ(content(path("m.dyad")).find("values"), std::string::npos);
  EXPECT_EQ(checked_squares(path("rows.csv")), (Names{"flag", "two", "three", "number"}));
}

}  // namespace
}  // namespace dyad
