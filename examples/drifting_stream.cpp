// Ratings whose taste drifts: what people think of an item changes as time goes by. Rows come one at a time, and each
// is predicted before its rating is known. One learner remembers everything, the other halves the weight of old rows
// every 10,000 rows.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include <dyad/learner.h>

int main() {
  constexpr int users = 200;
  constexpr int items = 100;
  constexpr int rows = 200'000;
  dyad::LearnerOptions options;
  options.shape.dim = users + items;
  options.shape.rank = 4;
  options.shape.diagonal = dyad::Diagonal::zero;
  dyad::Learner<double> remembers(options);
  options.half_life = 10'000;
  dyad::Learner<double> forgets(options);

  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<std::int32_t> any_user(0, users - 1);
  std::uniform_int_distribution<std::int32_t> any_item(0, items - 1);
  std::vector<double> taste(users);
  std::vector<double> phase(items);
  for (double& value : taste) value = normal(random);
  for (double& value : phase) value = 6.28 * normal(random);

  const std::vector<dyad::Index> offsets{0, 2};
  const std::vector<double> ones{1, 1};
  std::vector<std::int32_t> columns(2);
  std::vector<double> rating(1);
  std::vector<double> prediction(1);
  double squares[2] = {0, 0};
  constexpr int lines = 8;
  std::printf("%10s %22s %22s\n", "rows", "rmse, remembering all", "rmse, forgetting");
  for (int row = 1; row <= rows; ++row) {
    const std::int32_t user = any_user(random);
    const std::int32_t item = any_item(random);
    const double now = phase[static_cast<std::size_t>(item)] + 6.28 * row / rows;
    rating[0] = 3 + std::sin(now) + taste[static_cast<std::size_t>(user)] * std::cos(now) + 0.3 * normal(random);
    columns = {user, users + item};
    const auto one_row = dyad::Rows<double>::sparse(offsets, columns, ones, options.shape.dim, rating);
    int which = 0;
    for (dyad::Learner<double>* learner : {&remembers, &forgets}) {
      learner->learn(one_row, prediction);
      squares[which++] += std::pow(rating[0] - prediction[0], 2);
    }
    if (row % (rows / lines) != 0) continue;
    std::printf("%10d %22.3f %22.3f\n", row, std::sqrt(squares[0] * lines / rows),
                std::sqrt(squares[1] * lines / rows));
    squares[0] = squares[1] = 0;
  }

  std::vector<double> deviation(1);
  forgets.predict(dyad::Rows<double>::sparse(offsets, columns, ones, options.shape.dim), prediction, deviation);
  std::printf("\nthe last row: predicted %.2f +- %.2f, was %.2f\n", prediction[0], deviation[0], rating[0]);
}
