// Program that uses the installed library through find_package(dyad): trains the one-scan solver and checks a
// prediction.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <dyad/moment.h>
#include <dyad/version.h>

int main() {
  constexpr dyad::Index dim = 5;
  constexpr int batch_rows = 4000;
  dyad::MomentOptions options;
  options.shape.dim = dim;
  options.shape.rank = 1;
  dyad::OneScanSolver<double> solver(options);

  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto target_of = [](const double* x) { return x[0] - 2 * x[1] * x[1]; };
  for (int update = 0; update < 30; ++update) {
    std::vector<double> values(batch_rows * dim);
    std::vector<double> targets(batch_rows);
    for (double& value : values) value = normal(random);
    for (std::size_t i = 0; i < batch_rows; ++i) targets[i] = target_of(&values[i * dim]);
    solver.observe(dyad::Rows<double>::dense(values, dim, targets));
    solver.update();
  }

  const std::vector<double> x{0.5, 1.5, -1, 2, 0};
  std::vector<double> prediction(1);
  solver.model().predict(dyad::Rows<double>::dense(x, dim), prediction);
  std::printf("dyad %s: predicted %.6f, expected %.6f\n", DYAD_VERSION, prediction[0], target_of(x.data()));
  return std::abs(prediction[0] - target_of(x.data())) < 1e-6 ? 0 : 1;
}
