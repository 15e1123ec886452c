#include <dyad/learner.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <dyad/data_error.h>

#include "base/archive.h"
#include "serialization/safetensors.h"
#include "solvers/kalman/unknown_features.h"
#include "training/one_pass/class_evidence.h"
#include "training/one_pass/stream_learner.h"

namespace dyad {
namespace {

MomentOptions moment_options(const LearnerOptions& options) {
  MomentOptions moment;
  moment.shape = options.shape;
  moment.standardise = options.shape.is_measurement() ? Standardise::scale : Standardise::centre;
  moment.threads = options.threads;
  moment.seed = options.seed;
  return moment;
}

StreamOptions stream_options(const LearnerOptions& options) {
  options.validate();
  StreamOptions stream;
  KalmanOptions& kalman = stream.kalman;
  kalman = kalman_options(moment_options(options));
  Support support;
  if (options.range) support = {options.range->first, options.range->second};
  kalman.likelihood = make_likelihood(options.task, support);
  kalman.half_life = options.half_life;
  stream.standardised = false;
  stream.keep.memory = options.memory;
  stream.keep.sign_restarts = options.shape.is_measurement() && !options.shape.is_phase_retrieval();
  return stream;
}

/// Squares of larger numbers overflow in the sums of the filter.
template <typename Scalar>
void require_finite_features(const Rows<Scalar>& rows) {
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index, Scalar x) {
      if (!(std::abs(x) <= largest_value))
        throw std::invalid_argument("row " + std::to_string(i) + " has a feature that is not finite, or beyond 1e70");
    });
}

template <typename Scalar>
void require_finite_targets(const Rows<Scalar>& rows) {
  const std::span<const Scalar> targets = rows.targets();
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (!(std::abs(targets[i]) <= largest_value))
      throw std::invalid_argument("row " + std::to_string(i) + " has a target that is not finite, or beyond 1e70");
}

constexpr const char* learner_format = "dyad-learner";

void archive_options(Archive& archive, LearnerOptions& options) {
  ModelShape& shape = options.shape;
  archive.number("dim", shape.dim);
  archive.number("left_dim", shape.left_dim);
  archive.number("rank", shape.rank);
  archive.number("linear", shape.linear);
  archive.number("intercept", shape.intercept);
  archive.number("positive", shape.positive);
  archive.choice("diagonal", shape.diagonal, Diagonal::free);
  archive.choice("task", options.task, task_names.back().second);
  bool has_range = options.range.has_value();
  archive.number("has_range", has_range);
  if (has_range) {
    if (!options.range) options.range.emplace();
    archive.number("low", options.range->first);
    archive.number("high", options.range->second);
  }
  archive.number("half_life", options.half_life);
  archive.number("memory", options.memory);
  archive.number("threads", options.threads);
  // A double holds integers up to 2^53 exactly, so the 64 bits of the seed are stored as two halves.
  auto high = static_cast<std::uint32_t>(options.seed >> 32);
  auto low = static_cast<std::uint32_t>(options.seed);
  archive.number("seed_high", high);
  archive.number("seed_low", low);
  options.seed = static_cast<std::uint64_t>(high) << 32 | low;
}

}  // namespace

void LearnerOptions::validate() const {
  shape.validate();
  ThreadPool::require_possible(threads);
  if (shape.linear != shape.intercept)
    throw std::invalid_argument("a learner estimates both w and b, or neither (measurements)");
  if (shape.is_measurement() && (shape.diagonal != Diagonal::tied || !likelihood_of(task).has_identity_link() || range))
    throw std::invalid_argument("measurements are numbers without a range, and have no diagonal of their own");
  if (range && !(range->first < range->second))
    throw std::invalid_argument("a range goes from a number up to a larger one");
  if (!(half_life >= 0) || !(memory >= 0)) throw std::invalid_argument("half_life and memory must be at least 0");
}

template <typename Scalar>
struct Learner<Scalar>::Implementation {
  explicit Implementation(const LearnerOptions& given)
      : options(given), pool(given.threads), stream(stream_options(given)) {}

  /// What follows from the first rows: they are enough, or all there is.
  void start() {
    const Rows<Scalar> first = waiting.view(options.shape.dim);
    double entries = 0;
    for (Index i = 0; i < first.count(); ++i)
      first.for_each_entry(i, [&](Index, Scalar x) { entries += x != 0 ? 1 : 0; });
    const bool full = 2 * entries > static_cast<double>(options.shape.dim) * static_cast<double>(first.count());
    if (full && likelihood().has_identity_link()) stream.moment = moment_options(options);
    learner.emplace(stream, pool);
    std::vector<Scalar> values(static_cast<std::size_t>(first.count()));
    learner->learn(first, values);
    if (likelihood().is_classification()) apply_evidence(first, values);
    waiting = RowCache<Scalar>();
  }

  /// Adds the evidence of rows that were predicted before they were learned. `values`: their log-odds, which become the
  /// constant where the evidence of the rows before is not enough.
  void apply_evidence(const Rows<Scalar>& of, std::span<Scalar> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool is_positive = of.targets()[i] > 0;
      const auto value = static_cast<double>(values[i]);
      if (is_constant()) values[i] = static_cast<Scalar>(evidence.log_odds());
      evidence.add(is_positive, likelihood().score(is_positive ? 1 : 0, likelihood().mean(value)),
                   static_cast<double>(of.weight(static_cast<Index>(i))));
    }
  }

  /// Whether predictions are the constant probability.
  [[nodiscard]] bool is_constant() const { return likelihood().is_classification() && !evidence.is_enough(); }

  /// What features without data add to `variances`, which are those of all others.
  void add_unknown_features(const Rows<Scalar>& of, std::span<Scalar> variances, std::span<const Index> unseen) const {
    const KalmanFilter<Scalar>& filter = learner->filter();
    std::optional<UnknownFeatures> unknown;
    for (std::size_t i = 0; i < variances.size(); ++i) {
      const auto row = static_cast<Index>(i);
      const std::vector<Index> missing(unseen.empty() ? 0 : static_cast<std::size_t>(unseen[i]));  // all of group 0
      bool has_unknown = !missing.empty();
      of.for_each_entry(row, [&](Index j, Scalar x) {
        has_unknown = has_unknown || (x != 0 && !(filter.feature_posterior(j).scale > 0));
      });
      if (!has_unknown) continue;
      if (!unknown) unknown.emplace(filter);
      variances[i] += static_cast<Scalar>(unknown->variance(filter, of, row, missing));
    }
  }

  [[nodiscard]] Scalar as_prediction(double value) const {
    return static_cast<Scalar>(likelihood().mean(likelihood().support().clamp(value)));
  }

  [[nodiscard]] const Likelihood& likelihood() const { return *stream.kalman.likelihood; }

  /// Linear predictor without a model.
  [[nodiscard]] double constant() const {
    if (learner) return evidence.log_odds();
    return likelihood().link(likelihood().constant_mean(sum, static_cast<double>(rows)));
  }

  /// Everything but the options.
  void archive(Archive& archive) {
    archive.number("rows", rows);
    archive.number("sum", sum);
    archive.number("squares", squares);
    if (likelihood().is_classification()) archive.group("evidence", [&] { evidence.archive(archive); });
    bool has_started = learner.has_value();
    archive.number("has_started", has_started);
    if (!has_started) {
      archive_waiting(archive);
      return;
    }
    bool has_moments = stream.moment.has_value();
    archive.number("has_moments", has_moments);
    if (archive.is_loading()) {
      // Each filter stores dim x rank factors: a damaged dim or rank must not allocate more than the file can hold.
      double stored = 0;
      for (const auto& [name, numbers] : archive.arrays()) stored += static_cast<double>(numbers.size());
      if (static_cast<double>(options.shape.dim) * static_cast<double>(options.shape.rank) > stored)
        throw std::runtime_error("dim and rank are larger than the stored arrays");
      if (has_moments) stream.moment = moment_options(options);
      learner.emplace(stream, pool);
    }
    archive.group("stream", [&] { learner->archive(archive); });
  }

  /// The rows before the start, as coordinates: every entry has a row, a feature and a value.
  void archive_waiting(Archive& archive) {
    std::vector<double> places;
    std::vector<double> features;
    std::vector<Scalar> values;
    std::vector<Scalar> targets;
    std::vector<Scalar> weights;
    bool is_sparse = waiting.is_sparse();
    Index count = waiting.count();
    if (!archive.is_loading() && count > 0) {
      const Rows<Scalar> first = waiting.view(options.shape.dim);
      targets.assign(first.targets().begin(), first.targets().end());
      for (Index i = 0; i < count; ++i) {
        weights.push_back(first.weight(i));
        first.for_each_entry(i, [&](Index j, Scalar x) {
          places.push_back(static_cast<double>(i));
          features.push_back(static_cast<double>(j));
          values.push_back(x);
        });
      }
    }
    auto entries = static_cast<Index>(values.size());
    archive.number("waiting_rows", count);
    archive.number("waiting_entries", entries);
    archive.number("waiting_are_sparse", is_sparse);
    archive.vector("waiting_places", places, entries);
    archive.vector("waiting_features", features, entries);
    archive.vector("waiting_values", values, entries);
    archive.vector("waiting_targets", targets, count);
    archive.vector("waiting_weights", weights, count);
    if (!archive.is_loading() || count == 0) return;
    std::vector<Index> offsets(static_cast<std::size_t>(count) + 1);
    std::vector<std::int32_t> columns;
    for (std::size_t e = 0; e < values.size(); ++e) {
      const double place = places[e];
      if (!(place >= 0 && place < static_cast<double>(count)) || (e > 0 && place < places[e - 1]) ||
          !(features[e] >= 0 && features[e] < static_cast<double>(options.shape.dim)))
        throw std::runtime_error("the first rows have an entry outside of their shape");
      columns.push_back(static_cast<std::int32_t>(features[e]));
      ++offsets[static_cast<std::size_t>(place) + 1];
    }
    for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
    const auto sparse = Rows<Scalar>::sparse(offsets, columns, values, options.shape.dim, targets);
    if (is_sparse) {
      waiting.append(sparse.weighted(weights));
      return;
    }
    std::vector<Scalar> dense(static_cast<std::size_t>(count * options.shape.dim));
    for (Index i = 0; i < count; ++i)
      sparse.for_each_entry(i,
                            [&](Index j, Scalar x) { dense[static_cast<std::size_t>(i * options.shape.dim + j)] = x; });
    waiting.append(Rows<Scalar>::dense(dense, options.shape.dim, targets).weighted(weights));
  }

  LearnerOptions options;
  ThreadPool pool;
  StreamOptions stream;
  std::optional<StreamLearner<Scalar>> learner;  ///< nothing while the first rows are waited for
  RowCache<Scalar> waiting;
  Index rows = 0;
  double sum = 0;  ///< of the targets, or the number of positive ones, while waiting
  double squares = 0;
  ClassEvidence evidence;  ///< of the rows since the start
};

template <typename Scalar>
Learner<Scalar>::Learner(const LearnerOptions& options) : own_(std::make_unique<Implementation>(options)) {}
template <typename Scalar>
Learner<Scalar>::~Learner() = default;
template <typename Scalar>
Learner<Scalar>::Learner(Learner&&) noexcept = default;
template <typename Scalar>
Learner<Scalar>& Learner<Scalar>::operator=(Learner&&) noexcept = default;

template <typename Scalar>
void Learner<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  constexpr Index first_rows = 50;
  if (rows.dim() != own_->options.shape.dim)
    throw std::invalid_argument("the learner has " + std::to_string(own_->options.shape.dim) +
                                " features, the rows have " + std::to_string(rows.dim()) +
                                "; grow() makes room for more");
  if (!rows.has_targets() && rows.count() > 0) throw std::invalid_argument("rows to learn from need targets");
  if (!predictions.empty() && static_cast<Index>(predictions.size()) != rows.count())
    throw std::invalid_argument("predictions must hold one number per row");
  require_finite_features(rows);
  require_finite_targets(rows);
  Index done = 0;
  for (; !own_->learner && done < rows.count(); ++done) {
    if (!predictions.empty()) predictions[static_cast<std::size_t>(done)] = own_->as_prediction(own_->constant());
    const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(done)]);
    own_->squares += y * y;
    own_->sum += own_->likelihood().observed(y);
    own_->waiting.append(rows.slice(done, 1));
    ++own_->rows;
    if (own_->waiting.count() >= first_rows) own_->start();
  }
  const Rows<Scalar> rest = rows.slice(done, rows.count() - done);
  if (rest.count() == 0) return;
  std::vector<Scalar> values(static_cast<std::size_t>(rest.count()));
  own_->learner->learn(rest, values);
  if (own_->likelihood().is_classification()) own_->apply_evidence(rest, values);
  own_->rows += rest.count();
  if (predictions.empty()) return;
  for (std::size_t i = 0; i < values.size(); ++i)
    predictions[static_cast<std::size_t>(done) + i] = own_->as_prediction(static_cast<double>(values[i]));
}

template <typename Scalar>
void Learner<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> deviations,
                              std::span<const Index> unseen) const {
  if (rows.dim() != own_->options.shape.dim || static_cast<Index>(predictions.size()) != rows.count() ||
      (!deviations.empty() && deviations.size() != predictions.size()) ||
      (!unseen.empty() && unseen.size() != predictions.size()))
    throw std::invalid_argument(
        "rows must have the learner's features, and predictions, deviations and unseen one number each");
  if (!std::all_of(unseen.begin(), unseen.end(), [](Index count) { return count >= 0; }) ||
      (!unseen.empty() && own_->options.shape.left_dim > 0))
    throw std::invalid_argument("unseen must be at least 0, and is not for bilinear models");
  require_finite_features(rows);
  std::vector<Scalar> variances(predictions.size());
  if (own_->learner) {
    own_->learner->filter().predict(rows, predictions, variances);
    if (!deviations.empty()) own_->add_unknown_features(rows, variances, unseen);
  }
  if (!own_->learner || own_->is_constant())
    std::fill(predictions.begin(), predictions.end(), static_cast<Scalar>(own_->constant()));
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    predictions[i] = own_->as_prediction(static_cast<double>(predictions[i]));
    if (deviations.empty()) continue;
    const Likelihood& likelihood = own_->likelihood();
    const double noise_variance = likelihood.has_noise_variance() ? noise() * noise() : 0;
    deviations[i] = static_cast<Scalar>(std::sqrt(static_cast<double>(variances[i]) + noise_variance) *
                                        likelihood.mean_slope(static_cast<double>(predictions[i])));
  }
}

template <typename Scalar>
void Learner<Scalar>::grow(Index dim, Index left_dim) {
  LearnerOptions& options = own_->options;
  const Index right = dim - left_dim;
  if (dim < options.shape.dim || left_dim < options.shape.left_dim ||
      right < options.shape.dim - options.shape.left_dim || (left_dim > 0) != (options.shape.left_dim > 0))
    throw std::invalid_argument("a learner can only grow, on the sides that it has");
  if (!own_->learner && own_->waiting.count() > 0) own_->start();
  options.shape.dim = own_->stream.kalman.shape.dim = dim;
  options.shape.left_dim = own_->stream.kalman.shape.left_dim = left_dim;
  if (own_->learner) own_->learner->grow(dim, left_dim);
}

template <typename Scalar>
Index Learner<Scalar>::dim() const {
  return own_->options.shape.dim;
}

template <typename Scalar>
Index Learner<Scalar>::rows() const {
  return own_->rows;
}

template <typename Scalar>
double Learner<Scalar>::noise() const {
  if (own_->learner) return std::sqrt(own_->learner->noise_variance());
  if (own_->rows < 2) return std::numeric_limits<double>::infinity();
  const double mean = own_->sum / static_cast<double>(own_->rows);
  return std::sqrt(std::max(0.0, own_->squares / static_cast<double>(own_->rows) - mean * mean));
}

template <typename Scalar>
Model<Scalar> Learner<Scalar>::model() const {
  if (own_->learner && !own_->is_constant()) return own_->learner->model();
  Model<Scalar> constant(own_->options.shape.dim, own_->options.shape.rank, own_->options.shape.left_dim);
  constant.intercept = static_cast<Scalar>(own_->constant());
  return constant;
}

template <typename Scalar>
std::string Learner<Scalar>::origin() const {
  if (!own_->learner) return "the mean of the first rows";
  if (own_->is_constant())
    return "the constant probability: the features show no gain on rows before these are learned";
  return own_->learner->origin();
}

template <typename Scalar>
std::string Learner<Scalar>::to_bytes() {
  if (own_->learner) own_->learner->stop_keeping();  // buffered rows are not stored
  Archive archive;
  archive.group("options", [&] { archive_options(archive, own_->options); });
  own_->archive(archive);
  Safetensors file;
  file.metadata = {{"format", learner_format}, {"scalar", dtype_of<Scalar>()}};
  for (const auto& [name, numbers] : archive.arrays())
    file.tensors[name] = make_tensor(numbers, {static_cast<Index>(numbers.size())});
  return file.to_bytes();
}

template <typename Scalar>
Learner<Scalar> Learner<Scalar>::from_bytes(const std::string& bytes) {
  const std::string name = "the learner";
  const Safetensors file = Safetensors::from_bytes(bytes, name);
  const std::map<std::string, std::string> expected = {{"format", learner_format}, {"scalar", dtype_of<Scalar>()}};
  if (file.metadata != expected)
    throw DataError(name, 0, 0, "expected a learner of this scalar type, got another safetensors file");
  std::map<std::string, std::vector<double>> arrays;
  for (const auto& [array, tensor] : file.tensors) {
    if (tensor.dtype != dtype_of<double>()) throw DataError(name, 0, 0, "an array has the wrong type");
    arrays[array] = numbers_of<double>(tensor);
  }
  try {
    Archive archive(std::move(arrays));
    LearnerOptions options;
    archive.group("options", [&] { archive_options(archive, options); });
    Learner learner(options);
    learner.own_->archive(archive);
    return learner;
  } catch (const std::invalid_argument& error) {
    throw DataError(name, 0, 0, std::string("the learner is damaged: ") + error.what());
  } catch (const std::runtime_error& error) {
    throw DataError(name, 0, 0, std::string("the learner is damaged: ") + error.what());
  }
}

template class Learner<float>;
template class Learner<double>;

}  // namespace dyad
