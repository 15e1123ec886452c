#include "inference/inspect.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "base/file_paths.h"
#include "base/output_file.h"
#include "inference/strongest_pairs.h"
#include "model/low_rank.h"
#include "serialization/class_models.h"
#include "serialization/model_file.h"

namespace dyad {
namespace {

/// Factor on coefficients that result only from centering, when the largest weights are selected. It is small so that
/// they rank below the weights of the model. Sensitivity: docs/constants.md.
constexpr double centering_strength_factor = 1e-12;

/// Indices of the `top` largest |values|, in decreasing order and without zeros. Ties are sorted by index.
std::vector<Index> largest_magnitudes(const Vector<double>& values, Index top) {
  std::vector<Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), Index(0));
  const auto middle = order.begin() + std::min<Index>(top, values.size());
  std::partial_sort(order.begin(), middle, order.end(), [&](Index i, Index j) {
    return std::abs(values[i]) > std::abs(values[j]) || (std::abs(values[i]) == std::abs(values[j]) && i < j);
  });
  order.erase(middle, order.end());
  std::erase_if(order, [&](Index i) { return values[i] == 0; });
  return order;
}

/// Quotes a cell if necessary (RFC 4180).
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

namespace {

/// Positions of an axis in the units of the data.
EffectAxis describe_axis(const AnovaAxis& axis, const FeatureMap& map) {
  const Column& column = map.columns()[static_cast<std::size_t>(axis.column)];
  constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
  EffectAxis result;
  result.column = column.name;
  for (const double knot : axis.knots) {
    result.knots.push_back(column.scaling.center + column.scaling.scale * knot);
    result.labels.push_back(fmt::format("{:.4g}", result.knots.back()));
  }
  for (const Index level : axis.levels) {
    const std::string name = map.name(level);
    const std::string prefix = column.name + "=";
    result.knots.push_back(no_number);
    result.labels.push_back(name.starts_with(prefix) ? name.substr(prefix.size()) : "missing");
  }
  if (axis.has_missing_level) {
    result.knots.push_back(no_number);
    result.labels.emplace_back("missing");
  }
  return result;
}

/// Functions of an ANOVA model by decreasing share of the explained variance.
void add_effects(const ModelFile& file, Index top, Inspection& result) {
  const AnovaModel& model = *file.anova;
  const FeatureMap& map = file.features;
  const double unit = map.target.scaling.scale;
  result.intercept = map.target.scaling.center + unit * model.intercept;
  result.noise = unit * std::sqrt(model.posterior.noise_variance);
  result.effect_count = std::ssize(model.blocks);
  double total = 0;
  std::vector<Index> order;
  for (Index b = 0; b < result.effect_count; ++b) {
    total += model.blocks[static_cast<std::size_t>(b)].variance;
    order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
    return model.blocks[static_cast<std::size_t>(a)].variance > model.blocks[static_cast<std::size_t>(b)].variance;
  });
  order.resize(static_cast<std::size_t>(std::min(top, result.effect_count)));
  for (const Index b : order) {
    const AnovaBlock& block = model.blocks[static_cast<std::size_t>(b)];
    Effect effect;
    for (const Index axis : block.axes)
      effect.axes.push_back(describe_axis(model.axes[static_cast<std::size_t>(axis)], map));
    effect.share = total > 0 ? block.variance / total : 0;
    effect.spread = unit * std::sqrt(block.variance);
    for (std::size_t i = 0; i < block.values.size(); ++i) {
      // Slopes beyond the knots are not values of the function. Pairs have none.
      if (!block.is_pair() && model.axes[static_cast<std::size_t>(block.axes[0])].is_tail(static_cast<Index>(i)))
        continue;
      effect.values.push_back(unit * block.values[i]);
      effect.deviations.push_back(unit * block.deviations[i]);
    }
    result.effects.push_back(std::move(effect));
  }
}

/// Noise of the features of an average of samples, by decreasing |log factor| in standard errors.
void add_noise_factors(const ModelFile& file, Index top, Inspection& result) {
  const SampledPosterior& posterior = *file.sampled;
  if (posterior.log_noise_factors.empty()) return;
  result.noise = file.features.target.scaling.scale * std::exp(posterior.log_noise / 2);
  Vector<double> strengths = Vector<double>::Zero(file.model.dim());
  for (Index j = 0; j < file.model.dim(); ++j)
    if (const double deviation = posterior.log_noise_deviations[static_cast<std::size_t>(j)]; deviation > 0)
      strengths[j] = posterior.log_noise_factors[static_cast<std::size_t>(j)] / deviation;
  for (const Index j : largest_magnitudes(strengths, top)) {
    // The logarithm of the standard deviation is half of that of the variance.
    const double factor = std::exp(posterior.log_noise_factors[static_cast<std::size_t>(j)] / 2);
    result.noise_factors.push_back(
        {file.features.name(j), factor, factor * posterior.log_noise_deviations[static_cast<std::size_t>(j)] / 2});
  }
}

/// Inspections of the models of all classes.
Inspection inspect_classes(const std::string& bytes, const std::string& name, Index top) {
  const ClassModels models = ClassModels::from_bytes(bytes, name);
  Inspection result;
  for (std::size_t c = 0; c < models.parts.size(); ++c) {
    result.classes.push_back(inspect(ModelFile::from_bytes(models.parts[c], name), top));
    result.classes.back().positive = models.labels[c];
  }
  result.kind = result.classes.front().kind;
  result.task = Task::classification;
  result.target = models.target;
  result.features = result.classes.front().features;
  result.temperature = models.temperature;
  result.checksum = models.checksum;
  return result;
}

/// Properties that all models have.
Inspection inspect_properties(const ModelFile& file) {
  const FeatureMap& map = file.features;
  Inspection result;
  result.kind = map.kind;
  result.task = map.target.task;
  result.target = map.target.name;
  result.positive = map.target.positive;
  result.features = map.seen_count();
  result.rank = file.model.rank();
  result.training = file.training;
  result.checksum = file.checksum;
  if (!file.warning.empty()) result.warnings.push_back(file.warning);
  return result;
}

}  // namespace

Inspection inspect(const std::string& model_path, Index top) {
  const std::string bytes = ModelFile::read_bytes(model_path);
  Inspection result = ClassModels::is_class_file(bytes) ? inspect_classes(bytes, model_path, top)
                                                        : inspect(ModelFile::from_bytes(bytes, model_path), top);
  result.model_path = model_path;
  return result;
}

LinearTerms linear_terms(const ModelFile& file) {
  const FeatureMap& map = file.features;
  const Model<double>& model = file.model;
  // The model predicts y = offset + unit f(z), where x is a row in the units of the data and z = x / scale - shift is
  // the encoded row.
  const double unit = map.target.scaling.scale;
  const double offset = map.target.scaling.center;
  Vector<double> scale(model.dim());
  Vector<double> shift(model.dim());
  const std::vector<Scaling> scalings = map.scalings();
  for (Index j = 0; j < model.dim(); ++j) {
    scale[j] = scalings[static_cast<std::size_t>(j)].scale;
    shift[j] = scalings[static_cast<std::size_t>(j)].center / scale[j];
  }
  double intercept = model.intercept;
  Vector<double> w = as_vector(model.weights);
  Vector<double> gradient = interaction_gradient(model, shift);
  // Group of each feature whose square is a linear function of the feature; -1 for the others. At most one feature of a
  // group differs from 0 in a row. Their squares are merged into the intercept and the weights:
  // z_j^2 = slope z_j + constant (1 - z_m), where m is the indicator feature of missing values of column j, if any.
  std::vector<Index> linear_groups = map.indicator_columns();
  if (!Sides(model).is_bilinear()) {
    const Vector<double> squares = total_square_coefficients(model);
    for (const FeatureMap::LinearSquare& square : map.linear_squares()) {
      const Index j = square.feature;
      intercept += square.constant * squares[j];
      w[j] += square.slope * squares[j];
      if (square.missing_indicator >= 0) w[square.missing_indicator] -= square.constant * squares[j];
      gradient[j] -= 2 * squares[j] * shift[j];
      Index& group = linear_groups[static_cast<std::size_t>(j)];
      if (group < 0) group = static_cast<Index>(map.columns().size()) + j;
    }
  }

  // With u = x / scale and the second-order terms z'Qz, substituting z = u - shift gives
  // f = b - w'shift + shift'Q shift + (w - 2 Q shift)'u + u'Q u, where gradient = 2 Q shift.
  LinearTerms result;
  result.intercept = offset + unit * (intercept - w.dot(shift) + gradient.dot(shift) / 2);
  result.coefficients = unit * (w - gradient).cwiseQuotient(scale);
  result.effects = unit * w;
  result.scales = std::move(scale);
  result.groups = std::move(linear_groups);
  return result;
}

Inspection inspect(const ModelFile& file, Index top) {
  if (top < 0) throw std::invalid_argument(fmt::format("top, the number of terms, must be at least 0, got {}", top));
  Inspection result = inspect_properties(file);
  if (file.anova) {
    add_effects(file, top, result);
    return result;
  }
  if (file.sampled) add_noise_factors(file, top, result);
  const FeatureMap& map = file.features;
  const Model<double>& model = file.model;
  const Sides sides(model);
  const LinearTerms terms = linear_terms(file);
  const double unit = map.target.scaling.scale;
  result.intercept = terms.intercept;
  for (const double lambda : model.spectrum) result.spectrum.push_back(unit * lambda);

  // Weights are ranked by |w_j|, the effect at the center of the data. If w_j is 0, but centering a pair gives x_j a
  // coefficient, the small second term keeps feature j in the list, below all others.
  const Vector<double> strength = terms.effects.cwiseAbs().cwiseMax(
      centering_strength_factor * terms.coefficients.cwiseProduct(terms.scales).cwiseAbs());
  for (const Index j : largest_magnitudes(strength, top))
    result.weights.push_back({map.name(j), "", terms.coefficients[j], terms.effects[j]});

  const StrongestPairs pairs = strongest_pairs(model, top, terms.groups);
  result.are_pairs_exact = pairs.is_exact;
  result.pair_bound = std::abs(unit) * pairs.bound;
  for (const Pair& pair : pairs.pairs) {
    const double effect = unit * pair.coefficient;
    const Index right = pair.right + sides.right_first();
    result.pairs.push_back(
        {map.name(pair.left), map.name(right), effect / (terms.scales[pair.left] * terms.scales[right]), effect});
  }
  if (map.kind == Kind::phase && model.rank() == 1) {
    const Vector<double> a = std::sqrt(std::max(0.0, unit * model.spectrum[0])) * as_vector(model.factors);
    for (const Index j : largest_magnitudes(a, top))
      result.signal.push_back({map.name(j), "", a[j] / terms.scales[j], a[j]});
  }
  return result;
}

namespace {

/// Rows of the curves and surfaces of an ANOVA model. `prefix`: first cells of each row.
std::string effect_table(const Inspection& inspection, const std::string& prefix) {
  std::string text = fmt::format("{}intercept,,,,,{},,\n", prefix, inspection.intercept);
  const auto position = [](const EffectAxis& axis, std::size_t i) {
    return std::isnan(axis.knots[i]) ? csv_cell(axis.labels[i]) : fmt::format("{}", axis.knots[i]);
  };
  for (const Effect& effect : inspection.effects) {
    const EffectAxis& left = effect.axes[0];
    const bool is_pair = effect.axes.size() == 2;
    const std::size_t columns = is_pair ? effect.axes[1].knots.size() : 1;
    for (std::size_t i = 0; i < effect.values.size(); ++i)
      text += fmt::format("{}{},{},{},{},{},{},{},{}\n", prefix, is_pair ? "pair" : "column", csv_cell(left.column),
                          position(left, i / columns), is_pair ? csv_cell(effect.axes[1].column) : "",
                          is_pair ? position(effect.axes[1], i % columns) : "", effect.values[i], effect.deviations[i],
                          effect.share);
  }
  return text;
}

/// Rows of the terms of a low-rank model. `prefix`: first cells of each row.
std::string term_table(const Inspection& inspection, const std::string& prefix) {
  std::string text;
  const auto write = [&](const char* kind, const Term& term) {
    text += fmt::format("{}{},{},{},{},{}\n", prefix, kind, csv_cell(term.left), csv_cell(term.right), term.coefficient,
                        term.effect);
  };
  write("intercept", {"", "", inspection.intercept, inspection.intercept});
  for (const double value : inspection.spectrum) write("spectrum", {"", "", value, value});
  for (const Term& weight : inspection.weights) write("weight", weight);
  for (const Term& pair : inspection.pairs) write(pair.left == pair.right ? "square" : "pair", pair);
  for (const Term& entry : inspection.signal) write("signal", entry);
  return text;
}

constexpr const char* effect_header = "term,left,left_value,right,right_value,value,standard_error,share\n";
constexpr const char* term_header = "term,left,right,coefficient,effect\n";

}  // namespace

void export_terms(const Inspection& inspection, const std::string& path) {
  require_distinct_files({{path, "the export"}}, {{inspection.model_path, "the model"}});
  OutputFile file(path);
  const bool has_classes = !inspection.classes.empty();
  const std::vector<Inspection> models = has_classes ? inspection.classes : std::vector<Inspection>{inspection};
  // The solver is the same for all classes, but a model without functions has no effects.
  const bool has_effects =
      std::any_of(models.begin(), models.end(), [](const Inspection& model) { return model.effect_count > 0; });
  std::string text = std::string(has_classes ? "class," : "") + (has_effects ? effect_header : term_header);
  for (const Inspection& model : models) {
    const std::string prefix = has_classes ? csv_cell(model.positive) + "," : std::string();
    text += has_effects ? effect_table(model, prefix) : term_table(model, prefix);
  }
  file.write(text);
  file.commit();
}

}  // namespace dyad
