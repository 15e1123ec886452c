// Tables of docs/paper.md on the paper's algorithm: convergence, condition number, noisy theorem, special cases and
// feature distributions:
//   paper_tables FOLDER   writes the parts to the folder
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dyad/recover.h>

#include "page_parts.h"

namespace {

using dyad::Index;
using dyad::RecoverOptions;
using dyad::RecoveryPoint;
using dyad::Update;

constexpr std::array updates{Update::one_scan, Update::paper};

RecoverOptions problem(Index dim, Index rank, Update update = Update::paper) {
  RecoverOptions options;
  options.solver = dyad::Solver::moment;
  options.problem.dim = dim;
  options.problem.rank = rank;
  options.update = update;
  return options;
}

/// Smallest and largest number of rows to an error of 1e-6 over seeds 1 to 5, in units of kd.
std::string rows_to_converge(RecoverOptions options) {
  double smallest = INFINITY;
  double largest = 0;
  for (options.problem.seed = 1; options.problem.seed <= 5; ++options.problem.seed) {
    const dyad::RecoverySummary summary = dyad::recover(options);
    const double rows = summary.outcome == dyad::Outcome::converged
                            ? static_cast<double>(summary.rows) / static_cast<double>(options.problem.kd())
                            : INFINITY;
    smallest = std::min(smallest, rows);
    largest = std::max(largest, rows);
  }
  return smallest == largest ? fmt::format("{:.0f} kd", smallest)
                             : fmt::format("{:.0f} - {:.0f} kd", smallest, largest);
}

/// Measured factor per batch, its approximation and the bound of the proof, by the batch size.
void convergence(const std::string& folder) {
  constexpr Index d = 100;
  constexpr Index k = 3;
  std::array<std::string, 4> lines{"| batch |", "| measured factor |", "| sqrt((k + 2.5) d/n) |",
                                   "| bound on the factor |"};
  for (const Index multiple : {5, 10, 20, 50, 100, 200, 500, 1000}) {
    RecoverOptions options = problem(d, k);
    options.batch = multiple * k * d;
    options.tolerance = 1e-9;
    const std::vector<RecoveryPoint> trace = dyad::recover(options).trace;
    const double factor = std::pow(trace.back().error() / trace[1].error(), 1 / static_cast<double>(trace.size() - 2));
    options.theory = true;
    options.rows = 3 * *options.batch;
    const double bound = dyad::recover(options).trace.back().theory->factor;
    lines[0] += fmt::format(" {}kd |", multiple);
    lines[1] += fmt::format(" {:.2f} |", factor);
    lines[2] += fmt::format(" {:.2f} |", std::sqrt((k + 2.5) / static_cast<double>(multiple * k)));
    lines[3] += fmt::format(" {:.2f} |", bound);
    if (multiple == 20) dyad::bench::write_part(folder, "factor_20", fmt::format("{:.2f}", factor));
    if (multiple == 1000) dyad::bench::write_part(folder, "bound_1000", fmt::format("{:.2f}", bound));
  }
  dyad::bench::write_part(
      folder, "convergence",
      fmt::format("{}\n|---|---|---|---|---|---|---|---|---|\n{}\n{}\n{}\n", lines[0], lines[1], lines[2], lines[3]));
}

void condition_numbers(const std::string& folder) {
  std::string table = "| condition number of M* | one-scan | paper |\n|---|---|---|\n";
  for (const double condition : {1.0, 20.0, 1000.0}) {
    table += fmt::format("| {:g} |", condition);
    for (const Update update : updates) {
      RecoverOptions options = problem(100, 3, update);
      options.problem.condition = condition;
      options.batch = 1500;
      table += fmt::format(" {} |", rows_to_converge(options));
    }
    table += "\n";
  }
  dyad::bench::write_part(folder, "condition_numbers", table);
}

/// Rank-one matrix sensing, phase retrieval and the bilinear form of inductive matrix completion.
void special_cases(const std::string& folder) {
  std::string table = "| problem | command | one-scan | paper |\n|---|---|---|---|\n";
  const auto append = [&](const std::string& name, const std::string& command, const auto& change) {
    table += fmt::format("| {} | `{}` |", name, command);
    for (const Update update : updates) {
      RecoverOptions options = problem(200, 3, update);
      change(options.problem);
      table += fmt::format(" {} |", rows_to_converge(options));
    }
    table += "\n";
  };
  append("generalized factorization machine", "recover gfm --dim 200 --rank 3", [](dyad::PlantedOptions&) {});
  append("symmetric matrix sensing", "recover sensing --dim 200 --rank 3",
         [](dyad::PlantedOptions& planted) { planted.kind = dyad::Kind::sensing; });
  append("phase retrieval", "recover phase --dim 200", [](dyad::PlantedOptions& planted) {
    planted.kind = dyad::Kind::phase;
    planted.rank = 1;
  });
  for (const double condition : {1.0, 100.0})
    append("inductive matrix completion",
           fmt::format("recover bilinear --dim 60x80 --rank 3 --condition {}", condition),
           [&](dyad::PlantedOptions& planted) {
             planted.kind = dyad::Kind::bilinear;
             planted.dim = 60;
             planted.right_dim = 80;
             planted.condition = condition;
           });
  dyad::bench::write_part(folder, "special_cases", table);
}

/// Constants of the noisy theorem, its floors and the measured errors after 8 batches.
void noisy_theorem(const std::string& folder) {
  std::string table =
      "| noise | residual | delta | r | q | (1 + rho)/2 | r/(1 - q) | measured error | floor of the index | measured "
      "index "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n";
  constexpr std::array<std::pair<double, double>, 5> cases{
      {{0.1, 0}, {0.4, 0}, {0, 0.01}, {0, 0.1}, {0.1, 0.01}}};  // noise, residual
  for (const auto& [noise, residual] : cases) {
    RecoverOptions options = problem(20, 2);
    options.problem.noise = noise;
    options.problem.residual = residual;
    options.batch = 8000 * options.problem.kd();
    options.rows = 8 * *options.batch;
    options.theory = true;
    const RecoveryPoint last = dyad::recover(options).trace.back();
    const dyad::TheoryPoint& theory = *last.theory;
    const double printed_rate = 0.5 + residual / (1 + residual);  // rho = 2 residual / (1 + residual)
    table +=
        fmt::format("| {:g} | {:g} | {:.3f} | {:.4f} | {:.2f} | {:.2f} | {:.4f} | {:.4f} | {:.3f} | {:.4f} |\n", noise,
                    residual, theory.delta, theory.noise, theory.rate, printed_rate, theory.noise / (1 - theory.rate),
                    last.error(), theory.index_floor, last.tan_theta + theory.index_weight * last.error());
  }
  dyad::bench::write_part(folder, "noisy_theorem", table);
}

/// Noise term r on the second batch, in units of the printed and of the corrected expression.
void noise_term(const std::string& folder) {
  const auto measure_noise = [](Index d, double noise, double residual) {
    RecoverOptions options = problem(d, 2);
    options.problem.noise = noise;
    options.problem.residual = residual;
    options.batch = 64'000;
    options.rows = 2 * *options.batch;
    options.theory = true;
    return dyad::recover(options).trace.back().theory->noise * std::sqrt(static_cast<double>(*options.batch));
  };
  std::array<std::string, 5> lines{"| d |", "| r / (xi / sqrt(n)), printed |", "| r / (xi sqrt(d/n)) |",
                                   "| r / (sigma d^2 / sqrt(n)), printed |", "| r / (sigma d / sqrt(n)) |"};
  for (const Index dim : {10, 20, 40, 80}) {
    const auto d = static_cast<double>(dim);
    constexpr double noise = 0.1;
    constexpr double residual = 0.01;
    const double r_noise = measure_noise(dim, noise, 0) / noise;
    const double r_residual = measure_noise(dim, 0, residual) / residual;
    lines[0] += fmt::format(" {} |", dim);
    lines[1] += fmt::format(" {:.2f} |", r_noise);
    lines[2] += fmt::format(" {:.2f} |", r_noise / std::sqrt(d));
    lines[3] += fmt::format(" {:.3f} |", r_residual / (d * d));
    lines[4] += fmt::format(" {:.2f} |", r_residual / d);
  }
  dyad::bench::write_part(
      folder, "noise_term",
      fmt::format("{}\n|---|---|---|---|---|\n{}\n", lines[0], fmt::join(lines.begin() + 1, lines.end(), "\n")));
}

/// Rows to 1e-6 by the distribution of the features, with Gaussian and with estimated moments.
void feature_distributions(const std::string& folder) {
  using dyad::FeatureDistribution;
  std::string table = "| features | Gaussian formulas | estimated moments |\n|---|---|---|\n";
  for (const auto& [name, features] : {std::pair{"skewed", FeatureDistribution::skewed},
                                       {"uniform", FeatureDistribution::uniform},
                                       {"gaussian", FeatureDistribution::gaussian}}) {
    table += fmt::format("| {} |", name);
    for (const dyad::Moments moments : {dyad::Moments::gaussian, dyad::Moments::estimated}) {
      RecoverOptions options = problem(100, 3, Update::one_scan);
      options.problem.features = features;
      options.moments = moments;
      options.batch = 6000;
      table += fmt::format(" {} |", rows_to_converge(options));
    }
    table += "\n";
  }
  dyad::bench::write_part(folder, "feature_distributions", table);
}

/// Rows to 1e-6 for the diagonals that the paper does not have.
void diagonals(const std::string& folder) {
  using dyad::Diagonal;
  using dyad::FeatureDistribution;
  std::string table = "| features | diagonal | rows |\n|---|---|---|\n";
  for (const auto& [name, features, diagonal] :
       {std::tuple{"rademacher | zero", FeatureDistribution::rademacher, Diagonal::zero},
        {"gaussian | zero", FeatureDistribution::gaussian, Diagonal::zero},
        {"gaussian | free", FeatureDistribution::gaussian, Diagonal::free}}) {
    RecoverOptions options = problem(100, 3, Update::one_scan);
    options.problem.features = features;
    options.problem.diagonal = diagonal;
    table += fmt::format("| {} | {} |\n", name, rows_to_converge(options));
  }
  dyad::bench::write_part(folder, "diagonals", table);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: paper_tables FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  convergence(folder);
  condition_numbers(folder);
  special_cases(folder);
  noisy_theorem(folder);
  noise_term(folder);
  feature_distributions(folder);
  diagonals(folder);
}
