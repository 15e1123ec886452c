// Sampling errors of the shifted CI-RIP theorem and of the concentration lemmas against the number of rows, and the
// CI-RIP constant against the rank, for docs/paper.md:
//   concentration FOLDER   writes concentration.csv and the parts concentration, ci_rip_ranks, slope_* to the folder
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <Eigen/Dense>

#include "linalg/decompositions.h"
#include "page_parts.h"
#include "recovery/concentration.h"
#include "recovery/planted_problem.h"

namespace {

using dyad::ConcentrationErrors;
using dyad::Index;
using dyad::Matrix;
using dyad::RowMajorMatrix;
using dyad::Vector;

constexpr Index dim = 40;
constexpr Index rank = 3;
constexpr int batches = 16;  // per number of rows

/// w* and M* of a planted problem.
struct Target {
  Matrix<double> M;
  Vector<double> w;

  Target(Index k, dyad::Signs signs) {
    dyad::PlantedOptions options;
    options.dim = dim;
    options.rank = k;
    options.signs = signs;
    const dyad::PlantedProblem problem(options);
    const auto U = dyad::as_row_major(problem.truth().factors, dim, k);
    M = U * dyad::as_vector(problem.truth().spectrum).asDiagonal() * U.transpose();
    w = dyad::as_vector(problem.truth().weights);
  }
};

/// A quantity that the paper bounds by delta.
struct Statement {
  std::string name;     ///< of the part slope_NAME
  std::string text;     ///< cell of the table
  std::string rows;     ///< rows that the paper requires, without the factor C
  double square_limit;  ///< n times the squared error: expectation, or spectral norm of the matrix variance
  std::function<double(const ConcentrationErrors&)> error;
};

std::vector<Statement> statements(const Target& target) {
  constexpr double d = dim;
  const double trace = target.M.trace();
  const double square = target.M.squaredNorm();
  const Matrix<double> I = Matrix<double>::Identity(dim, dim);
  const Matrix<double> mean = 2 * target.M + trace * I;
  const Matrix<double> second_moment =
      (d + 6) * ((trace * trace + 2 * square) * I + 4 * trace * target.M + 8 * target.M * target.M);
  return {{"ci_rip", "shifted CI-RIP", "k^3 d / delta^2", dyad::spectral_norm(second_moment - mean * mean) / 4,
           [](const auto& errors) { return dyad::spectral_norm(errors.ci_rip); }},
          {"trace", "1'A(M)/n - tr(M)", "k / delta^2", 2 * square,
           [](const auto& errors) { return std::abs(errors.trace); }},
          {"mean", "1'X'w/n", "1 / delta^2", 1, [](const auto& errors) { return std::abs(errors.mean); }},
          {"linear", "A'(X'w)/n", "d / delta^2", 3 * (d + 4),
           [](const auto& errors) { return dyad::spectral_norm(errors.linear); }},
          {"quadratic", "X A(M)/n", "k^2 d / delta^2", (d + 4) * (trace * trace + 2 * square),
           [](const auto& errors) { return errors.quadratic.norm(); }},
          {"covariance", "I - XX'/n", "d / delta^2", d + 1,
           [](const auto& errors) { return dyad::spectral_norm(errors.covariance); }}};
}

RowMajorMatrix<double> gaussian_rows(Index n, int batch) {
  dyad::Random random(static_cast<std::uint64_t>(batch), static_cast<std::uint64_t>(n));
  return dyad::random_normal<double>(random, n, dim);
}

/// Slope of a least-squares line through (log x, log y), with its standard error from the residuals.
struct Slope {
  double value = 0;
  double standard_error = 0;

  Slope(const std::vector<double>& x, const std::vector<double>& y) {
    const auto points = static_cast<Index>(x.size());
    Matrix<double> A(points, 2);
    Vector<double> target(points);
    for (Index i = 0; i < points; ++i) {
      A.row(i) << 1, std::log(x[static_cast<std::size_t>(i)]);
      target[i] = std::log(y[static_cast<std::size_t>(i)]);
    }
    const Vector<double> fit = A.householderQr().solve(target);
    const double variance = (target - A * fit).squaredNorm() / static_cast<double>(points - 2);
    value = fit[1];
    standard_error = std::sqrt(variance * (A.transpose() * A).inverse()(1, 1));
  }
};

/// Table of all statements: root mean squares of the errors by the number of rows, and slopes.
void concentration(const std::string& folder) {
  const Target target(rank, dyad::Signs::mixed);
  const std::vector<Statement> all = statements(target);
  std::vector<double> sizes;
  std::vector<std::vector<double>> errors(all.size());  // by statement and size
  std::ofstream csv(folder + "/concentration.csv");
  fmt::print(csv, "n");
  for (const Statement& statement : all) fmt::print(csv, ",{}", statement.name);
  for (Index n = 1000; n <= 128'000; n *= 2) {
    std::vector<double> squares(all.size());
    for (int batch = 1; batch <= batches; ++batch) {
      const auto measured = dyad::measure_concentration(gaussian_rows(n, batch), target.M, target.w);
      for (std::size_t s = 0; s < all.size(); ++s) squares[s] += std::pow(all[s].error(measured), 2) / batches;
    }
    sizes.push_back(static_cast<double>(n));
    fmt::print(csv, "\n{}", n);
    for (std::size_t s = 0; s < all.size(); ++s) {
      errors[s].push_back(std::sqrt(squares[s]));
      fmt::print(csv, ",{}", errors[s].back());
    }
  }
  std::string table =
      "| quantity | rows in the paper | n = 1,000 | n = 8,000 | n = 128,000 | slope (s.e.) | error x sqrt(n) | limit "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (std::size_t s = 0; s < all.size(); ++s) {
    const Slope slope(sizes, errors[s]);
    table +=
        fmt::format("| {} | {} | {:.3f} | {:.3f} | {:.4f} | {:.2f} ({:.2f}) | {:.2f} | {:.2f} |\n", all[s].text,
                    all[s].rows, errors[s].front(), errors[s][3], errors[s].back(), slope.value, slope.standard_error,
                    errors[s].back() * std::sqrt(sizes.back()), std::sqrt(all[s].square_limit));
    dyad::bench::write_part(folder, "slope_" + all[s].name, fmt::format("{:.2f}", slope.value));
  }
  dyad::bench::write_part(folder, "concentration", table);
}

/// Table of the CI-RIP constant by the rank of M, for eigenvalues 1 and -1 and for eigenvalues 1.
void ci_rip_ranks(const std::string& folder) {
  constexpr std::array<Index, 5> ranks{1, 2, 4, 8, 16};
  constexpr Index n = 32'000;
  constexpr int samples = 8;
  std::string table = "| eigenvalues \\ k |";
  for (const Index k : ranks) table += fmt::format(" {} |", k);
  table += " exponent of k from k = 4 |\n|---|---|---|---|---|---|---|\n";
  for (const auto& [name, signs] : {std::pair{"1 and -1", dyad::Signs::mixed}, std::pair{"1", dyad::Signs::positive}}) {
    std::vector<double> x;
    std::vector<double> constants;
    table += fmt::format("| {} |", name);
    for (const Index k : ranks) {
      const Target target(k, signs);
      double sum = 0;
      for (int batch = 1; batch <= samples; ++batch)
        sum += dyad::spectral_norm(dyad::measure_concentration(gaussian_rows(n, batch), target.M, target.w).ci_rip);
      const double constant = sum / samples * std::sqrt(n / static_cast<double>(dim));
      table += fmt::format(" {:.2f} |", constant);
      if (k >= 4) {
        x.push_back(static_cast<double>(k));
        constants.push_back(constant);
      }
    }
    table += fmt::format(" {:.2f} |\n", Slope(x, constants).value);
  }
  dyad::bench::write_part(folder, "ci_rip_ranks", table);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: concentration FOLDER\n");
    return 2;
  }
  concentration(argv[1]);
  ci_rip_ranks(argv[1]);
}
