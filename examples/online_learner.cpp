// The example of docs/cpp.md: learns rows of a planted model online and prints the error of the last predictions. Fails
// if the error exceeds twice the noise.

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <dyad/learner.h>

int main() {
  constexpr double noise = 0.1;
  constexpr int blocks = 40;
  constexpr int block_rows = 500;
  dyad::LearnerOptions options;
  options.shape.dim = 20;
  options.shape.rank = 2;
  dyad::Learner<double> learner(options);  // or <float>

  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> values(block_rows * 20);
  std::vector<double> targets(block_rows);
  std::vector<double> predictions(block_rows);
  std::vector<double> deviations(block_rows);
  for (int block = 0; block < blocks; ++block) {
    for (double& value : values) value = normal(random);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const double* x = &values[i * 20];
      targets[i] = x[0] - 2 * x[1] * x[2] + noise * normal(random);
    }
    learner.learn(dyad::Rows<double>::dense(values, 20, targets), predictions);  // predictions before the update
  }

  double squared_errors = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) squared_errors += std::pow(predictions[i] - targets[i], 2);
  const double rmse = std::sqrt(squared_errors / block_rows);
  const dyad::Rows<double> new_rows = dyad::Rows<double>::dense(values, 20);
  learner.predict(new_rows, predictions, deviations);
  std::printf("rmse %.3f, standard deviation of the first prediction %.3f\n", rmse, deviations[0]);
  return rmse < 2 * noise ? 0 : 1;
}
