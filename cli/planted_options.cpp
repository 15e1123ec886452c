#include "planted_options.h"

#include <algorithm>

namespace dyad::cli {
namespace {

/// `part` of what was given.
Index read_dim(const std::string& part, const std::string& given) {
  if (const auto number = parse_number<Index>(part)) return *number;
  throw CLI::ValidationError("--dim", fmt::format("expected a whole number or D1xD2, got '{}'", given));
}

}  // namespace

void PlantedArguments::add_to(CLI::App& verb, PlantedOptions& problem) {
  add_choice(verb, "KIND", problem.kind, kinds, "What to plant")->required();
  const auto read_dims = [&problem](const std::string& text) {
    const std::size_t cross = text.find('x');
    problem.dim = read_dim(text.substr(0, cross), text);
    if (cross == std::string::npos) return;
    problem.right_dim = read_dim(text.substr(cross + 1), text);
    if (problem.right_dim == 0) throw CLI::ValidationError("--dim", "both numbers of D1xD2 must be at least 1");
  };
  verb.add_option_function<std::string>("--dim", read_dims, "Number of features d; bilinear: of x and of z, D1xD2")
      ->required()
      ->type_name("D");
  rank_ = add_number(verb, "--rank", problem.rank, "K",
                     "Rank k of M; default 8, or the number of features if that is less (phase: 1)");
  add_number(verb, "--noise", problem.noise, "S", "Standard deviation of the noise in y; default 0");
  add_number(verb, "--residual", problem.residual, "S", "Size of the eigenvalues of M* beyond rank k; default 0");
  add_number(verb, "--condition", problem.condition, "C",
             "Eigenvalues of M* are evenly spaced from 1 down to 1/C in size; default 1");
  add_choice(verb, "--signs", problem.signs, all_signs, "Signs of the eigenvalues; default mixed");
  add_number(verb, "--intercept", problem.intercept, "B", "Plant this intercept, and learn one");
  add_choice(verb, "--features", problem.features, all_features,
             "Distribution of the features, all with mean 0 and variance 1; skewed is min(N(0,1), 0.1), standardised; "
             "default gaussian");
  add_choice(verb, "--diagonal", problem.diagonal, diagonals,
             "Squares x_j^2: tied to M, left out (zero), or with weights of their own (free); default tied");
  add_number(verb, "--seed", problem.seed, "S", "The same seed gives the same problem; default 1");
}

void PlantedArguments::complete(PlantedOptions& problem) const {
  if (rank_->count() == 0) {
    const Index most = problem.is_bilinear() ? std::min(problem.dim, problem.right_dim) : problem.dim;
    problem.rank = problem.kind == Kind::phase ? 1 : std::min(problem.rank, most);
  }
  problem.validate();
}

std::string dims(const PlantedOptions& problem) {
  return problem.is_bilinear() ? fmt::format("{}x{}", problem.dim, problem.right_dim) : std::to_string(problem.dim);
}

}  // namespace dyad::cli
