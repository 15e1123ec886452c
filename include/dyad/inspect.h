#pragma once

#include <map>
#include <string>
#include <vector>

#include <dyad/data.h>

namespace dyad {

/// A term of the model in the units of the data: y (or, for classes, the log-odds) is the intercept and the sum of
/// coefficient * x_left * x_right, or coefficient * x_left where there is no right. Categories are 1 or 0.
struct Term {
  std::string left;
  std::string right;  ///< empty: a linear weight; the same as left: a square
  double coefficient = 0;
  double effect = 0;  ///< of one standard deviation (numbers, as measured in the first rows) or of a category
};

struct Inspection {
  std::string model_path;
  Kind kind = Kind::gfm;
  Task task = Task::regression;
  std::string target;
  std::string positive;  ///< classes
  Index features = 0;
  Index rank = 0;
  double intercept = 0;          ///< in the units of the data
  std::vector<double> spectrum;  ///< of M, for scaled columns and the scaled target
  std::vector<Term> weights;     ///< strongest first, by effect
  std::vector<Term> pairs;       ///< strongest first, by effect
  double pair_bound = 0;         ///< no pair that is not listed has a larger effect
  bool pairs_are_exact = true;   ///< the listed pairs are the strongest there are
  std::vector<Term> signal;      ///< phase: a, up to its sign, the strongest first
  std::map<std::string, std::string> training;
  std::string checksum;  ///< of the model file, verified; empty: it has none (version 1)
  std::vector<std::string> warnings{};
};

/// The `top` strongest terms of each sort. Pairs are found by bounds on what is left, never by forming all of them.
Inspection inspect(const std::string& model_path, Index top);

/// Writes them as CSV: term,left,right,coefficient,effect. The path must not be that of the model.
void export_terms(const Inspection& inspection, const std::string& path);

}  // namespace dyad
