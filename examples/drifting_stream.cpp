// Online learning with concept drift. The ratings of items by users change slowly over time. The program predicts every
// row before it learns its rating, and compares a learner that weights all rows equally with one that halves the weight
// of old rows every 10,000 rows.

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
  constexpr double two_pi = 6.28;
  dyad::LearnerOptions options;
  options.shape.dim = users + items;
  options.shape.rank = 4;
  options.shape.diagonal = dyad::Diagonal::zero;
  dyad::Learner<double> stationary(options);
  options.half_life = 10'000;
  dyad::Learner<double> forgetting(options);

  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<std::int32_t> user_distribution(0, users - 1);
  std::uniform_int_distribution<std::int32_t> item_distribution(0, items - 1);
  std::vector<double> preference(users);
  std::vector<double> phase(items);
  for (double& value : preference) value = normal(random);
  for (double& value : phase) value = two_pi * normal(random);

  const std::vector<dyad::Index> offsets{0, 2};
  const std::vector<double> ones{1, 1};
  std::vector<std::int32_t> columns(2);
  std::vector<double> rating(1);
  std::vector<double> prediction(1);
  double squared_errors[2] = {0, 0};
  constexpr int lines = 8;  // of the printed table; each shows the rmse of the rows since the previous line
  std::printf("%10s %22s %22s\n", "rows", "rmse, no forgetting", "rmse, half-life 10,000");
  for (int row = 1; row <= rows; ++row) {
    const std::int32_t user = user_distribution(random);
    const std::int32_t item = item_distribution(random);
    // One period of the drift over the whole stream.
    const double angle = phase[static_cast<std::size_t>(item)] + two_pi * row / rows;
    rating[0] =
        3 + std::sin(angle) + preference[static_cast<std::size_t>(user)] * std::cos(angle) + 0.3 * normal(random);
    columns = {user, users + item};
    const auto one_row = dyad::Rows<double>::sparse(offsets, columns, ones, options.shape.dim, rating);
    int which = 0;
    for (dyad::Learner<double>* learner : {&stationary, &forgetting}) {
      learner->learn(one_row, prediction);
      squared_errors[which++] += std::pow(rating[0] - prediction[0], 2);
    }
    if (row % (rows / lines) != 0) continue;
    std::printf("%10d %22.3f %22.3f\n", row, std::sqrt(squared_errors[0] * lines / rows),
                std::sqrt(squared_errors[1] * lines / rows));
    squared_errors[0] = squared_errors[1] = 0;
  }

  std::vector<double> deviation(1);
  forgetting.predict(dyad::Rows<double>::sparse(offsets, columns, ones, options.shape.dim), prediction, deviation);
  std::printf("\nlast row: predicted %.2f +- %.2f, rating %.2f\n", prediction[0], deviation[0], rating[0]);
}
