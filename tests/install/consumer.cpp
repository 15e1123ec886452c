// A user of the installed library: feeds rows of its own to the learner and asks for a prediction.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <dyad/moment.h>
#include <dyad/version.h>

int main() {
  constexpr dyad::Index dim = 5;
  constexpr int batch = 4000;
  dyad::MomentOptions options;
  options.shape.dim = dim;
  options.shape.rank = 1;
  dyad::OneScanSolver<double> solver(options);

  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto truth = [](const double* x) { return x[0] - 2 * x[1] * x[1]; };
  for (int update = 0; update < 30; ++update) {
    std::vector<double> values(batch * dim);
    std::vector<double> targets(batch);
    for (double& value : values) value = normal(random);
    for (std::size_t i = 0; i < batch; ++i) targets[i] = truth(&values[i * dim]);
    solver.observe(dyad::Rows<double>::dense(values, dim, targets));
    solver.update();
  }

  const std::vector<double> x{0.5, 1.5, -1, 2, 0};
  std::vector<double> prediction(1);
  solver.model().predict(dyad::Rows<double>::dense(x, dim), prediction);
  std::printf("dyad %s: predicted %.6f, expected %.6f\n", DYAD_VERSION, prediction[0], truth(x.data()));
  return std::abs(prediction[0] - truth(x.data())) < 1e-6 ? 0 : 1;
}
