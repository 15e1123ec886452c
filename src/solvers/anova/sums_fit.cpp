#include "solvers/anova/sums_fit.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

#include "solvers/anova/model_assembly.h"
#include "solvers/anova/terms.h"

namespace dyad {
namespace {

/// Iterations of REML. They start from the variances of a part of the rows, and end earlier if the evidence does not
/// change.
constexpr Index max_sums_iterations = 12;

/// Number of numbers per axis in an archive, beside its knots or levels: column, number of knots or levels, and flags.
constexpr Index archived_axis_fields = 6;
/// First axis, second axis or -1.
constexpr Index archived_block_fields = 2;
/// First kernel, second kernel or -1, variance, tie, penalty.
constexpr Index archived_component_fields = 5;

[[noreturn]] void throw_damaged() { throw std::runtime_error("the functions of the training state are damaged"); }

/// Saves or loads a table of numbers whose row count is part of the archive.
void archive_table(Archive& archive, const std::string& name, std::vector<double>& numbers, Index fields) {
  auto count = static_cast<Index>(numbers.size()) / fields;
  archive.number(name + ".count", count);
  archive.vector(name, numbers, count * fields);
}

Index checked_size(double number, std::size_t limit) {
  if (!(number >= 0 && number <= static_cast<double>(limit))) throw_damaged();
  return static_cast<Index>(number);
}

}  // namespace

AnovaFit fit_sums(const AnovaModel& model, const AnovaPrior& prior, const BasisSums& sums,
                  const AnovaOptions& options) {
  std::vector<std::unique_ptr<FittedAxis>> axes;
  for (std::size_t a = 0; a < model.axes.size(); ++a)
    axes.push_back(std::make_unique<FittedAxis>(model.axes[a], prior.means[a]));
  std::vector<std::unique_ptr<Term>> terms;
  std::vector<RowMajorMatrix<double>> bases;
  std::vector<Index> offsets{0};
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const AnovaBlock& block = model.blocks[b];
    const FittedAxis& first = *axes[static_cast<std::size_t>(block.axes[0])];
    auto term = block.is_pair()
                    ? std::make_unique<Term>(first, *axes[static_cast<std::size_t>(block.axes[1])], std::pair{0, 0})
                    : std::make_unique<Term>(first);
    std::vector<BlockKernel> kernels;
    for (const AnovaPrior::Component& component : prior.blocks[b]) kernels.push_back(component.kernel);
    term->set_kernels(kernels);
    for (std::size_t c = 0; c < kernels.size(); ++c) {
      term->kernels[c].theta = prior.blocks[b][c].theta;
      term->kernels[c].tie = prior.blocks[b][c].tie;
      term->kernels[c].penalty = prior.blocks[b][c].penalty;
    }
    bases.push_back(term->basis);
    offsets.push_back(offsets.back() + term->basis.cols());
    terms.push_back(std::move(term));
  }
  Vector<double> centers;
  const CenteredSums centered = sums.project(bases, centers);
  std::vector<VarianceBlock> blocks = make_variance_blocks(terms, offsets);
  VarianceOptions variance_options = make_variance_options(options, prior.scale);
  variance_options.max_iterations = max_sums_iterations;
  const VarianceFit fit = estimate_variances(centered, blocks, prior.noise_variance, variance_options);
  set_variances(blocks, terms);
  for (std::size_t t = 0; t < terms.size(); ++t)
    terms[t]->values = terms[t]->basis * fit.gamma.segment(offsets[t], terms[t]->basis.cols());
  AnovaFit result = assemble_fit(terms, offsets, centered, centers, fit);
  result.prior.scale = prior.scale;
  result.model.intercept = sums.mean() - centers.dot(fit.gamma);
  result.model.posterior.noise_variance = options.is_classification ? 0 : fit.noise_variance;
  result.model.log_noise = model.log_noise;
  result.model.posterior.intercept_variance = fit.noise_variance / centered.weight;
  result.held_out_loss = held_out_loss(fit, centered.weight, options);
  return result;
}

void archive_functions(Archive& archive, AnovaFunctions& model) {
  std::vector<double> axes;
  std::vector<double> positions;  // knots and levels
  std::vector<double> blocks;
  std::vector<double> values;
  if (!archive.is_loading()) {
    for (const AnovaAxis& axis : model.axes) {
      const std::size_t count = axis.is_categorical ? axis.levels.size() : axis.knots.size();
      for (const double field :
           {static_cast<double>(axis.column), static_cast<double>(count), axis.is_categorical ? 1.0 : 0.0,
            axis.is_discrete ? 1.0 : 0.0, axis.has_missing_level ? 1.0 : 0.0, axis.has_tails ? 1.0 : 0.0})
        axes.push_back(field);
      positions.insert(positions.end(), axis.knots.begin(), axis.knots.end());
      positions.insert(positions.end(), axis.levels.begin(), axis.levels.end());
    }
    for (const AnovaBlock& block : model.blocks) {
      blocks.push_back(static_cast<double>(block.axes[0]));
      blocks.push_back(block.is_pair() ? static_cast<double>(block.axes[1]) : -1);
      values.insert(values.end(), block.values.begin(), block.values.end());
    }
  }
  archive.number("intercept", model.intercept);
  archive_table(archive, "axes", axes, archived_axis_fields);
  archive_table(archive, "positions", positions, 1);
  archive_table(archive, "blocks", blocks, archived_block_fields);
  archive_table(archive, "values", values, 1);
  if (!archive.is_loading()) return;
  model.axes.clear();
  model.blocks.clear();
  std::size_t next = 0;
  for (std::size_t i = 0; i < axes.size(); i += archived_axis_fields) {
    AnovaAxis& axis = model.axes.emplace_back();
    axis.column = static_cast<Index>(axes[i]);
    const Index count = checked_size(axes[i + 1], positions.size() - next);
    axis.is_categorical = axes[i + 2] != 0;
    axis.is_discrete = axes[i + 3] != 0;
    axis.has_missing_level = axes[i + 4] != 0;
    axis.has_tails = axes[i + 5] != 0;
    for (Index k = 0; k < count; ++k, ++next)
      if (axis.is_categorical)
        axis.levels.push_back(static_cast<Index>(positions[next]));
      else
        axis.knots.push_back(positions[next]);
  }
  next = 0;
  for (std::size_t i = 0; i < blocks.size(); i += archived_block_fields) {
    AnovaBlock& block = model.blocks.emplace_back();
    if (axes.empty()) throw_damaged();
    block.axes.push_back(checked_size(blocks[i], model.axes.size() - 1));
    if (blocks[i + 1] >= 0) block.axes.push_back(checked_size(blocks[i + 1], model.axes.size() - 1));
    const Index count = checked_size(static_cast<double>(model.block_size(block)), values.size() - next);
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(next);
    block.values.assign(first, first + count);
    next += static_cast<std::size_t>(count);
  }
}

void AnovaPrior::archive(Archive& archive, const AnovaModel& model) {
  archive.number("scale", scale);
  archive.number("noise_variance", noise_variance);
  means.resize(model.axes.size());
  for (std::size_t a = 0; a < means.size(); ++a)
    archive.matrix("means." + std::to_string(a), means[a], model.axes[a].size(), 1);
  blocks.resize(model.blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    std::vector<double> table;
    if (!archive.is_loading())
      for (const Component& component : blocks[b])
        for (const double field : {static_cast<double>(component.kernel.first),
                                   component.kernel.second ? static_cast<double>(*component.kernel.second) : -1.0,
                                   component.theta, static_cast<double>(component.tie), component.penalty})
          table.push_back(field);
    archive_table(archive, "kernels." + std::to_string(b), table, archived_component_fields);
    if (!archive.is_loading()) continue;
    blocks[b].clear();
    for (std::size_t i = 0; i < table.size(); i += archived_component_fields) {
      Component& component = blocks[b].emplace_back();
      component.kernel.first = static_cast<AxisKernel>(checked_size(table[i], axis_kernel_count - 1));
      if (table[i + 1] >= 0)
        component.kernel.second = static_cast<AxisKernel>(checked_size(table[i + 1], axis_kernel_count - 1));
      component.theta = table[i + 2];
      component.tie = static_cast<Index>(table[i + 3]);
      component.penalty = table[i + 4];
    }
  }
}

}  // namespace dyad
