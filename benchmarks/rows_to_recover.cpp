// Number of rows until the moment solver recovers a planted model, by d and k, with fitted exponents:
//   rows_to_recover FOLDER   writes rows_to_recover.csv and the parts rows_to_recover and rows_fit to the folder
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <Eigen/Dense>

#include <dyad/recover.h>

#include "page_parts.h"

namespace {

using dyad::Index;

constexpr int seeds = 3;

/// Rows until the error is 1e-6, median over the seeds, with the default batch of 6kd rows.
double rows_needed(Index dim, Index rank) {
  std::vector<double> rows;
  for (int seed = 1; seed <= seeds; ++seed) {
    dyad::RecoverOptions options;
    options.solver = dyad::Solver::moment;
    options.problem.dim = dim;
    options.problem.rank = rank;
    options.problem.seed = static_cast<std::uint64_t>(seed);
    const dyad::RecoverySummary summary = dyad::recover(options);
    rows.push_back(summary.outcome == dyad::Outcome::converged ? static_cast<double>(summary.rows) : NAN);
  }
  std::sort(rows.begin(), rows.end());
  return rows[seeds / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: rows_to_recover FOLDER\n");
    return 2;
  }
  const std::vector<Index> dims{50, 100, 200, 400, 800};
  const std::vector<Index> ranks{1, 2, 3, 4, 6, 8, 12};
  const std::string folder = argv[1];
  std::ofstream csv(folder + "/rows_to_recover.csv");
  fmt::print(csv, "d,k,rows\n");
  std::string table = "| d \\ k |";
  for (const Index rank : ranks) table += fmt::format(" {} |", rank);
  table += "\n|---|---|---|---|---|---|---|---|\n";

  // Least squares for log rows = c + a log d + b log k.
  std::vector<Eigen::Vector3d> points;
  std::vector<double> log_rows;
  for (const Index dim : dims) {
    table += fmt::format("| {} |", dim);
    for (const Index rank : ranks) {
      const double rows = rows_needed(dim, rank);
      const auto d = static_cast<double>(dim);
      const auto k = static_cast<double>(rank);
      table += fmt::format(" {:.0f} |", rows / (k * d));
      fmt::print(csv, "{},{},{}\n", dim, rank, rows);
      points.emplace_back(1, std::log(d), std::log(k));
      log_rows.push_back(std::log(rows));
    }
    table += "\n";
  }
  Eigen::MatrixXd A(static_cast<Index>(points.size()), 3);
  for (std::size_t i = 0; i < points.size(); ++i) A.row(static_cast<Index>(i)) = points[i];
  const Eigen::Map<Eigen::VectorXd> target(log_rows.data(), static_cast<Index>(log_rows.size()));
  const Eigen::Vector3d fit = A.colPivHouseholderQr().solve(target);
  dyad::bench::write_part(folder, "rows_to_recover", table);
  dyad::bench::write_part(folder, "rows_fit",
                          fmt::format("{:.0f} d^{:.2f} k^{:.2f}", std::exp(fit[0]), fit[1], fit[2]));
  return csv.good() ? 0 : 1;
}
