#include "planted_options.h"

#include <algorithm>

namespace dyad::cli {
namespace {

/// Parses one number of `text`, the value of --dim.
Index parse_dim(const std::string& number, const std::string& text) {
  if (const auto dim = parse_number<Index>(number)) return *dim;
  throw CLI::ValidationError("--dim", fmt::format("expected an integer or D1xD2, got '{}'", text));
}

}  // namespace

void PlantedArguments::add_to(CLI::App& subcommand, PlantedOptions& problem) {
  add_choice(subcommand, "KIND", problem.kind, kinds, "Kind of the planted model")->required();
  const auto parse_dims = [&problem](const std::string& text) {
    const std::size_t cross = text.find('x');
    problem.dim = parse_dim(text.substr(0, cross), text);
    if (cross == std::string::npos) return;
    problem.right_dim = parse_dim(text.substr(cross + 1), text);
    if (problem.right_dim == 0) throw CLI::ValidationError("--dim", "both numbers of D1xD2 must be at least 1");
  };
  subcommand
      .add_option_function<std::string>("--dim", parse_dims,
                                        "Number d of features; bilinear: D1xD2 features of x and z")
      ->required()
      ->type_name("D");
  rank_ = add_number(subcommand, "--rank", problem.rank, "K", "Rank k of M; default min(8, d), phase: 1");
  add_number(subcommand, "--noise", problem.noise, "S", "Standard deviation of the noise in y; default 0");
  add_number(subcommand, "--residual", problem.residual, "S",
             "Absolute value of the eigenvalues of M*, the planted M, beyond rank k; default 0");
  add_number(
      subcommand, "--condition", problem.condition, "C",
      "Condition number of M*, the planted M: absolute eigenvalues are evenly spaced between 1 and 1/C; default 1");
  add_choice(subcommand, "--signs", problem.signs, sign_choices, "Signs of the eigenvalues; default mixed");
  add_number(subcommand, "--intercept", problem.intercept, "B",
             "Intercept of the planted model; default: no intercept, and none is estimated");
  add_choice(subcommand, "--features", problem.features, feature_choices,
             "Distribution of the features, with mean 0 and variance 1; skewed: min(N(0,1), 0.1), standardized; "
             "default gaussian");
  add_choice(subcommand, "--diagonal", problem.diagonal, diagonals,
             "Coefficients of x_j^2: M_jj (tied), none (zero) or independent of M (free); default tied");
  add_number(subcommand, "--outliers", problem.outliers, "SHARE",
             "Share of rows whose target is off by 10 standard deviations of y; default 0");
  add_number(subcommand, "--seed", problem.seed, "S", "Random seed; default 1");
}

void PlantedArguments::complete(PlantedOptions& problem) const {
  if (problem.is_bilinear() != (problem.right_dim > 0))
    throw std::invalid_argument(problem.is_bilinear() ? "KIND bilinear requires --dim D1xD2"
                                                      : "--dim D1xD2 requires KIND bilinear");
  if (rank_->count() == 0) {
    const Index max_rank = problem.is_bilinear() ? std::min(problem.dim, problem.right_dim) : problem.dim;
    problem.rank = problem.kind == Kind::phase ? 1 : std::min(problem.rank, max_rank);
  }
  problem.validate();
}

std::string format_dims(const PlantedOptions& problem) {
  return problem.is_bilinear() ? fmt::format("{}x{}", problem.dim, problem.right_dim) : std::to_string(problem.dim);
}

}  // namespace dyad::cli
