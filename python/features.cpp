// Parameters and posterior of low-rank models by feature, for weights(), interactions() and factors().
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "inference/inspect.h"
#include "inference/strongest_pairs.h"
#include "serialization/model_file.h"
#include "support.h"
#include "training/state/train_state.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

/// Column of each feature, x first; -1 for libsvm indices and hashed features.
std::vector<Index> feature_columns(const FeatureMap& map) {
  std::vector<Index> columns = map.indicator_columns();
  for (std::size_t c = 0; c < map.columns().size(); ++c) {
    const Column& column = map.columns()[c];
    const Index first = column.is_right ? map.count(FeatureMap::Side::left) : 0;
    for (const Index feature : {column.number_feature, column.missing_feature})
      if (feature >= 0) columns[static_cast<std::size_t>(first + feature)] = static_cast<Index>(c);
  }
  return columns;
}

/// Posterior means and variances of the filter in a model file; None if the file has no posterior of the parameters.
nb::object posterior(const ModelFile& file) {
  if (file.sampled || file.anova) return nb::none();
  std::optional<SavedPosterior> saved;
  try {
    saved.emplace(SavedPosterior::load(file, "the model"));
  } catch (const std::invalid_argument&) {
    return nb::none();
  }
  const KalmanFilter<double>& filter = saved->filter;
  const auto dim = static_cast<std::size_t>(file.model.dim());
  const auto rank = static_cast<std::size_t>(filter.options().shape.rank);
  std::vector<double> factors(dim * rank);
  std::vector<double> factor_variances(dim * rank);
  std::vector<double> weight_variances(dim);
  std::vector<double> square_variances(dim);
  for (std::size_t j = 0; j < dim; ++j) {
    const FeaturePosterior<double> feature = filter.feature_posterior(static_cast<Index>(j));
    for (std::size_t c = 0; c < rank; ++c) {
      factors[j * rank + c] = feature.factors[c];
      factor_variances[j * rank + c] = feature.factor_variances[c];
    }
    weight_variances[j] = feature.weight_variance;
    square_variances[j] = feature.square_variance;
  }
  nb::dict fields;
  fields["factors"] = to_array(std::move(factors), {dim, rank});
  fields["signs"] = to_array(filter.factor_signs());
  fields["factor_variances"] = to_array(std::move(factor_variances), {dim, rank});
  fields["weight_variances"] = to_array(std::move(weight_variances));
  fields["square_variances"] = to_array(std::move(square_variances));
  fields["diagonal"] = filter.options().shape.diagonal == Diagonal::free   ? "free"
                       : filter.options().shape.diagonal == Diagonal::zero ? "zero"
                                                                           : "tied";
  return fields;
}

/// Features of a model file: names, columns and scaling, and for low-rank models the posterior of their parameters.
nb::dict features(const nb::bytes& model) {
  const ModelFile file = ModelFile::from_bytes(to_string(model), "the model");
  const FeatureMap& map = file.features;
  std::vector<std::string> names;
  std::vector<double> centers;
  std::vector<double> scales;
  std::vector<double> lows;
  std::vector<double> highs;
  const std::vector<Scaling> scalings = map.scalings();
  for (Index j = 0; j < map.dim(); ++j) {
    names.push_back(map.name(j));
    const Scaling& scaling = scalings[static_cast<std::size_t>(j)];
    centers.push_back(scaling.center);
    scales.push_back(scaling.scale);
    lows.push_back(scaling.low);
    highs.push_back(scaling.high);
  }
  nb::dict fields;
  fields["names"] = names;
  fields["columns"] = to_array(feature_columns(map));
  fields["centers"] = to_array(std::move(centers));
  fields["scales"] = to_array(std::move(scales));
  fields["lows"] = to_array(std::move(lows));
  fields["highs"] = to_array(std::move(highs));
  fields["target_center"] = map.target.scaling.center;
  fields["target_scale"] = map.target.scaling.scale;
  if (!file.anova) {
    const Vector<double> squares = total_square_coefficients(file.model);
    const LinearTerms linear = linear_terms(file);
    fields["intercept"] = linear.intercept;
    fields["coefficients"] = to_array(std::vector<double>(linear.coefficients.begin(), linear.coefficients.end()));
    fields["effects"] = to_array(std::vector<double>(linear.effects.begin(), linear.effects.end()));
    fields["squares"] = to_array(std::vector<double>(squares.begin(), squares.end()));
  }
  fields["posterior"] = posterior(file);
  return fields;
}

}  // namespace

void bind_features(nb::module_& module) { module.def("features", &features, "model"_a); }

}  // namespace dyad::python
