#include "serialization/anova_tensors.h"

#include <cmath>
#include <cstdint>
#include <span>

namespace dyad {
namespace {

// column, is_categorical, is_discrete, has_missing_level, number of knots or levels, has_tails
constexpr Index axis_fields = 6;
constexpr Index block_fields = 3;  // first axis, second axis or -1, number of directions of the posterior

template <typename Number>
void add_vector(Safetensors& file, const std::string& name, const std::vector<Number>& numbers) {
  file.tensors[name] = make_tensor(numbers, {static_cast<Index>(numbers.size())});
}

template <typename Number, typename Other>
void append(std::vector<Number>& numbers, const Other* values, Index count) {
  for (Index i = 0; i < count; ++i) numbers.push_back(static_cast<Number>(values[i]));
}

/// Takes consecutive parts of an array, and throws DataError if it is too short.
template <typename Number>
class Parts {
 public:
  Parts(const ModelReader& reader, const std::string& name)
      : reader_(reader), name_(name), numbers_(reader.values<Number>(name)) {}

  std::span<const Number> take(Index count) {
    reader_.require(count >= 0 && count <= static_cast<Index>(numbers_.size()) - next_,
                    "the tensor '" + name_ + "' is too short");
    const std::span<const Number> part(numbers_.data() + next_, static_cast<std::size_t>(count));
    next_ += count;
    return part;
  }
  void require_end() const {
    reader_.require(next_ == static_cast<Index>(numbers_.size()), "the tensor '" + name_ + "' is too long");
  }
  [[nodiscard]] Index size() const { return static_cast<Index>(numbers_.size()); }

 private:
  const ModelReader& reader_;
  std::string name_;
  std::vector<Number> numbers_;
  Index next_ = 0;
};

std::vector<AnovaAxis> read_axes(const ModelReader& reader, const std::string& prefix, Index columns) {
  Parts<std::int64_t> table(reader, prefix + "axes");
  Parts<double> knots(reader, prefix + "knots");
  Parts<std::int64_t> levels(reader, prefix + "levels");
  std::vector<AnovaAxis> axes(static_cast<std::size_t>(table.size() / axis_fields));
  for (AnovaAxis& axis : axes) {
    const auto fields = table.take(axis_fields);
    axis.column = fields[0];
    axis.is_categorical = fields[1] != 0;
    axis.is_discrete = fields[2] != 0;
    axis.has_missing_level = fields[3] != 0;
    axis.has_tails = fields[5] != 0;
    reader.require(axis.column >= 0 && axis.column < columns, "an axis refers to a column that does not exist");
    if (axis.is_categorical) {
      const auto part = levels.take(fields[4]);
      axis.levels.assign(part.begin(), part.end());
    } else {
      const auto part = knots.take(fields[4]);
      axis.knots.assign(part.begin(), part.end());
      for (std::size_t k = 0; k < axis.knots.size(); ++k)
        reader.require(std::isfinite(axis.knots[k]) && (k == 0 || axis.knots[k] > axis.knots[k - 1]),
                       "the knots of an axis are not finite and increasing");
    }
  }
  table.require_end();
  knots.require_end();
  levels.require_end();
  return axes;
}

/// Reads axes and blocks without deviations, and returns the number of directions of each block.
std::vector<Index> read_functions(const ModelReader& reader, const std::string& prefix, Index columns,
                                  AnovaFunctions& functions) {
  functions.axes = read_axes(reader, prefix, columns);
  Parts<double> intercept(reader, prefix + "intercept");
  functions.intercept = intercept.take(1)[0];
  intercept.require_end();
  Parts<std::int64_t> table(reader, prefix + "blocks");
  Parts<double> values(reader, prefix + "values");
  std::vector<Index> widths;
  for (Index b = 0; b < table.size() / block_fields; ++b) {
    const auto fields = table.take(block_fields);
    AnovaBlock block;
    for (const std::int64_t axis : {fields[0], fields[1]}) {
      if (axis == -1 && !block.axes.empty()) continue;
      reader.require(axis >= 0 && axis < std::ssize(functions.axes), "a block refers to an axis that does not exist");
      block.axes.push_back(axis);
    }
    const auto coefficients = values.take(functions.block_size(block));
    block.values.assign(coefficients.begin(), coefficients.end());
    widths.push_back(fields[2]);
    functions.blocks.push_back(std::move(block));
  }
  table.require_end();
  values.require_end();
  reader.require(functions.is_finite(), "a parameter is not finite");
  return widths;
}

void add_functions(const AnovaFunctions& functions, const std::vector<Index>& widths, const std::string& prefix,
                   Safetensors& file) {
  std::vector<std::int64_t> axes;
  std::vector<double> knots;
  std::vector<std::int64_t> levels;
  for (const AnovaAxis& axis : functions.axes) {
    const std::size_t count = axis.is_categorical ? axis.levels.size() : axis.knots.size();
    for (const Index field : {axis.column, Index{axis.is_categorical}, Index{axis.is_discrete},
                              Index{axis.has_missing_level}, static_cast<Index>(count), Index{axis.has_tails}})
      axes.push_back(field);
    append(knots, axis.knots.data(), std::ssize(axis.knots));
    append(levels, axis.levels.data(), std::ssize(axis.levels));
  }
  std::vector<std::int64_t> blocks;
  std::vector<double> values;
  for (std::size_t b = 0; b < functions.blocks.size(); ++b) {
    const AnovaBlock& block = functions.blocks[b];
    for (const Index field : {block.axes[0], block.is_pair() ? block.axes[1] : -1, widths[b]}) blocks.push_back(field);
    append(values, block.values.data(), std::ssize(block.values));
  }
  add_vector(file, prefix + "intercept", std::vector<double>{functions.intercept});
  file.tensors[prefix + "axes"] = make_tensor(axes, {std::ssize(functions.axes), axis_fields});
  add_vector(file, prefix + "knots", knots);
  add_vector(file, prefix + "levels", levels);
  file.tensors[prefix + "blocks"] = make_tensor(blocks, {std::ssize(functions.blocks), block_fields});
  add_vector(file, prefix + "values", values);
}

void read_posterior(const ModelReader& reader, const std::vector<Index>& widths, AnovaModel& model) {
  AnovaPosterior& posterior = model.posterior;
  Parts<float> factors(reader, "anova.factors");
  Parts<float> root(reader, "anova.root");
  Parts<double> center(reader, "anova.center");
  Parts<double> variances(reader, "anova.variances");
  Index total = 0;
  for (std::size_t b = 0; b < widths.size(); ++b) {
    const Index rows = model.block_size(model.blocks[b]);
    reader.require(widths[b] >= 0 && widths[b] <= rows, "a block has more directions than coefficients");
    const auto part = factors.take(rows * widths[b]);
    posterior.factors.push_back(
        Eigen::Map<const RowMajorMatrix<float>>(part.data(), rows, widths[b]).template cast<double>());
    total += widths[b];
  }
  factors.require_end();
  const auto lower = root.take(total * (total + 1) / 2);
  root.require_end();
  posterior.root.setZero(total, total);
  for (Index i = 0, next = 0; i < total; ++i)
    for (Index j = 0; j <= i; ++j) posterior.root(i, j) = static_cast<double>(lower[static_cast<std::size_t>(next++)]);
  const auto centers = center.take(total);
  center.require_end();
  posterior.center = Eigen::Map<const Vector<double>>(centers.data(), total);
  const auto numbers = variances.take(2);
  variances.require_end();
  posterior.intercept_variance = numbers[0];
  posterior.noise_variance = numbers[1];
  reader.require(posterior.root.allFinite() && posterior.center.allFinite() && numbers[0] >= 0 && numbers[1] >= 0,
                 "the posterior covariance is not finite");
}

}  // namespace

void add_anova_model(const AnovaModel& model, Safetensors& file) {
  const AnovaPosterior& posterior = model.posterior;
  std::vector<Index> widths;
  std::vector<double> deviations;
  std::vector<double> block_variances;
  std::vector<float> factors;
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const AnovaBlock& block = model.blocks[b];
    const RowMajorMatrix<double>& factor = posterior.factors[b];
    widths.push_back(factor.cols());
    append(deviations, block.deviations.data(), std::ssize(block.deviations));
    block_variances.push_back(block.variance);
    append(factors, factor.data(), factor.size());
  }
  std::vector<float> root;
  for (Index i = 0; i < posterior.root.rows(); ++i)
    append(root, posterior.root.data() + i * posterior.root.cols(), i + 1);
  std::vector<double> center;
  append(center, posterior.center.data(), posterior.center.size());
  add_functions(model, widths, "anova.", file);
  add_vector(file, "anova.deviations", deviations);
  add_vector(file, "anova.block_variances", block_variances);
  add_vector(file, "anova.factors", factors);
  add_vector(file, "anova.root", root);
  add_vector(file, "anova.center", center);
  add_vector(file, "anova.variances", std::vector<double>{posterior.intercept_variance, posterior.noise_variance});
  if (!model.log_noise.is_zero())
    add_functions(model.log_noise, std::vector<Index>(model.log_noise.blocks.size(), 0), "anova.noise.", file);
}

bool has_anova_model(const ModelReader& reader) { return reader.has_tensor("anova.intercept"); }

AnovaModel read_anova_model(const ModelReader& reader, Index columns) {
  AnovaModel model;
  const std::vector<Index> widths = read_functions(reader, "anova.", columns, model);
  Parts<double> deviations(reader, "anova.deviations");
  Parts<double> block_variances(reader, "anova.block_variances");
  for (AnovaBlock& block : model.blocks) {
    const auto errors = deviations.take(model.block_size(block));
    block.deviations.assign(errors.begin(), errors.end());
    block.variance = block_variances.take(1)[0];
  }
  deviations.require_end();
  block_variances.require_end();
  reader.require(model.is_finite(), "a parameter is not finite");
  read_posterior(reader, widths, model);
  // The column behind those of the table is the prediction.
  if (reader.has_tensor("anova.noise.intercept"))
    (void)read_functions(reader, "anova.noise.", columns + 1, model.log_noise);
  return model;
}

}  // namespace dyad
