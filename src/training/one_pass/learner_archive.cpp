// Serialization of Learner: to_bytes() and from_bytes().

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <dyad/error.h>

#include "serialization/safetensors.h"
#include "training/one_pass/learner_implementation.h"

namespace dyad {
namespace {

/// Value of the metadata field "format".
constexpr const char* learner_format = "dyad-learner";

/// Saves or loads the options.
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
  // Archives store doubles, which represent integers up to 2^53 exactly. The 64 bits of the seed are stored as halves.
  auto high = static_cast<std::uint32_t>(options.seed >> 32);
  auto low = static_cast<std::uint32_t>(options.seed);
  archive.number("seed_high", high);
  archive.number("seed_low", low);
  options.seed = static_cast<std::uint64_t>(high) << 32 | low;
}

}  // namespace

template <typename Scalar>
void Learner<Scalar>::Implementation::archive(Archive& archive) {
  archive.number("rows", rows);
  archive.number("sum", sum);
  archive.number("squares", squares);
  if (likelihood().is_classification()) archive.group("evidence", [&] { evidence.archive(archive); });
  bool has_started = learner.has_value();
  archive.number("has_started", has_started);
  if (!has_started) {
    archive_first_rows(archive);
    return;
  }
  bool has_moments = stream.moment.has_value();
  archive.number("has_moments", has_moments);
  if (archive.is_loading()) {
    // Each filter stores dim x rank factors. The check prevents excessive allocations if dim or rank is damaged.
    double stored = 0;
    for (const auto& [name, numbers] : archive.arrays()) stored += static_cast<double>(numbers.size());
    if (static_cast<double>(options.shape.dim) * static_cast<double>(options.shape.rank) > stored)
      throw std::runtime_error("dim times rank exceeds the size of the stored arrays");
    if (has_moments) stream.moment = moment_options(options);
    learner.emplace(stream, pool);
  }
  archive.group("stream", [&] { learner->archive(archive); });
}

// The rows are stored in coordinate format: each entry has a row, a feature and a value.
template <typename Scalar>
void Learner<Scalar>::Implementation::archive_first_rows(Archive& archive) {
  std::vector<double> row_indices;
  std::vector<double> features;
  std::vector<Scalar> values;
  std::vector<Scalar> targets;
  std::vector<Scalar> weights;
  bool is_sparse = first_rows.is_sparse();
  Index count = first_rows.count();
  if (!archive.is_loading() && count > 0) {
    const Rows<Scalar> first = first_rows.view(options.shape.dim);
    targets.assign(first.targets().begin(), first.targets().end());
    for (Index i = 0; i < count; ++i) {
      weights.push_back(first.weight(i));
      first.for_each_entry(i, [&](Index j, Scalar x) {
        row_indices.push_back(static_cast<double>(i));
        features.push_back(static_cast<double>(j));
        values.push_back(x);
      });
    }
  }
  auto entries = static_cast<Index>(values.size());
  archive.number("waiting_rows", count);
  archive.number("waiting_entries", entries);
  archive.number("waiting_are_sparse", is_sparse);
  archive.vector("waiting_places", row_indices, entries);
  archive.vector("waiting_features", features, entries);
  archive.vector("waiting_values", values, entries);
  archive.vector("waiting_targets", targets, count);
  archive.vector("waiting_weights", weights, count);
  if (!archive.is_loading() || count == 0) return;
  std::vector<Index> offsets(static_cast<std::size_t>(count) + 1);
  std::vector<std::int32_t> columns;
  for (std::size_t e = 0; e < values.size(); ++e) {
    const double row = row_indices[e];
    if (!(row >= 0 && row < static_cast<double>(count)) || (e > 0 && row < row_indices[e - 1]) ||
        !(features[e] >= 0 && features[e] < static_cast<double>(options.shape.dim)))
      throw std::runtime_error("an entry of the first rows has an invalid row or feature index");
    columns.push_back(static_cast<std::int32_t>(features[e]));
    ++offsets[static_cast<std::size_t>(row) + 1];
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  const auto sparse = Rows<Scalar>::sparse(offsets, columns, values, options.shape.dim, targets);
  if (is_sparse) {
    first_rows.append(sparse.weighted(weights));
    return;
  }
  std::vector<Scalar> dense(static_cast<std::size_t>(count * options.shape.dim));
  for (Index i = 0; i < count; ++i)
    sparse.for_each_entry(i,
                          [&](Index j, Scalar x) { dense[static_cast<std::size_t>(i * options.shape.dim + j)] = x; });
  first_rows.append(Rows<Scalar>::dense(dense, options.shape.dim, targets).weighted(weights));
}

template <typename Scalar>
std::string Learner<Scalar>::to_bytes() {
  if (implementation_->learner) implementation_->learner->finish_buffered_start();  // buffered rows are not stored
  Archive archive;
  archive.group("options", [&] { archive_options(archive, implementation_->options); });
  implementation_->archive(archive);
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
    throw DataError(
        name, 0, 0,
        std::string("expected a learner with scalar type ") + dtype_of<Scalar>() + ", got another safetensors file");
  std::map<std::string, std::vector<double>> arrays;
  for (const auto& [array, tensor] : file.tensors) {
    if (tensor.dtype != dtype_of<double>())
      throw DataError(name, 0, 0,
                      "array \"" + array + "\" has type " + tensor.dtype + ", expected " + dtype_of<double>());
    arrays[array] = tensor_values<double>(tensor);
  }
  try {
    Archive archive(std::move(arrays));
    LearnerOptions options;
    archive.group("options", [&] { archive_options(archive, options); });
    Learner learner(options);
    learner.implementation_->archive(archive);
    return learner;
  } catch (const std::invalid_argument& error) {
    throw DataError(name, 0, 0, std::string("the learner is damaged: ") + error.what());
  } catch (const std::runtime_error& error) {
    throw DataError(name, 0, 0, std::string("the learner is damaged: ") + error.what());
  }
}

template std::string Learner<float>::to_bytes();
template std::string Learner<double>::to_bytes();
template Learner<float> Learner<float>::from_bytes(const std::string&);
template Learner<double> Learner<double>::from_bytes(const std::string&);

}  // namespace dyad
