#include "serialization/model_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <dyad/error.h>
#include <dyad/version.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/memory_limit.h"
#include "base/output_file.h"
#include "encoding/column_reader.h"
#include "serialization/anova_tensors.h"
#include "serialization/checksum.h"
#include "serialization/feature_schema.h"
#include "serialization/model_container.h"
#include "serialization/model_reader.h"
#include "serialization/posterior_tensors.h"
#include "serialization/safetensors.h"

namespace dyad {
namespace {

/// Version that is written; older versions are read, too (docs/model-file.md).
constexpr int format_version = 2;
constexpr int first_version_with_checksum = 2;
constexpr const char* state_prefix = "state.";
constexpr const char* training_prefix = "training.";

void read_model(const ModelReader& reader, const FeatureMap& map, Model<double>& model) {
  model.weights = reader.float_values("weights");
  model.spectrum = reader.float_values("spectrum");
  model.factors = reader.float_values("factors");
  model.squares = reader.float_values("squares");
  model.left_dim = map.left_dim();
  const std::vector<double> intercept = reader.float_values("intercept");
  reader.require(intercept.size() == 1 && model.dim() == map.dim() &&
                     model.factors.size() == model.weights.size() * model.spectrum.size() &&
                     (model.squares.empty() || model.squares.size() == model.weights.size()) &&
                     (model.squares.empty() || !map.is_bilinear()),
                 "the shapes of 'intercept', 'weights', 'factors', 'spectrum' and 'squares' do not match each other "
                 "and the features");
  model.intercept = intercept.front();
  reader.require(model.is_finite(), "a parameter is not finite");
}

}  // namespace

void ModelFile::predict(const Rows<double>& rows, std::span<double> predictions) const {
  if (!anova) return model.predict(rows, predictions);
  const ColumnReader reader(features);
  ColumnTable table = reader.empty_table();
  reader.append(rows, table);
  anova->predict(table, predictions);
}

Safetensors ModelFile::content() const {
  Safetensors file;
  file.metadata["format"] = "dyad";
  file.metadata["format_version"] = std::to_string(format_version);
  file.metadata["written_by"] = std::string("dyad ") + DYAD_VERSION;
  for (const auto& [name, value] : training) file.metadata[training_prefix + name] = value;
  for (const auto& [name, value] : annotations) file.metadata[annotation_prefix + name] = value;

  const Index dim = model.dim();
  const auto add_tensor = [&](const std::string& name, std::span<const double> numbers, std::vector<Index> shape) {
    if (precision == Precision::double_precision)
      file.views[name] = view_tensor(numbers, std::move(shape));
    else
      file.tensors[name] = make_tensor(std::vector<float>(numbers.begin(), numbers.end()), std::move(shape));
  };
  if (anova) {
    add_anova_model(*anova, file);
  } else {
    add_tensor("intercept", {&model.intercept, 1}, {1});
    add_tensor("weights", model.weights, {dim});
    add_tensor("factors", model.factors, {dim, model.rank()});
    add_tensor("spectrum", model.spectrum, {model.rank()});
    add_tensor("squares", model.squares, {static_cast<Index>(model.squares.size())});
  }
  if (sampled) add_sampled_posterior(*sampled, file);
  add_feature_schema(features, file);
  for (const auto& [name, numbers] : state)
    file.views[state_prefix + name] = view_tensor<double>(numbers, {static_cast<Index>(numbers.size())});
  set_checksum(file);
  return file;
}

ModelFile ModelFile::from_bytes(const std::string& bytes, const std::string& file) {
  const Safetensors content = Safetensors::view_bytes(bytes, file);
  const ModelReader reader(content, file);
  const std::string format = content.metadata.contains("format") ? content.metadata.at("format") : "";
  if (format == ModelContainer::format)
    reader.fail(
        "expected a model file of dyad, got a container of several models or of a Learner, as written by the Python "
        "package; read it with dyad.load, and write the model of one class with save(path, class_index=...)");
  if (format != "dyad") reader.fail("expected a model file of dyad, got another safetensors file");
  const std::string& version_text = reader.metadata("format_version");
  int version = 0;
  const auto [end, error] = std::from_chars(version_text.data(), version_text.data() + version_text.size(), version);
  reader.require(error == std::errc() && end == version_text.data() + version_text.size() && version >= 1,
                 "its format version is not a positive integer");
  if (version > format_version)
    reader.fail(fmt::format(
        "the model has format version {}, written by {}; this is dyad {}, which reads versions up "
        "to {}; install a newer dyad",
        version, content.metadata.contains("written_by") ? content.metadata.at("written_by") : "another program",
        DYAD_VERSION, format_version));
  ModelFile result;
  if (content.metadata.contains(checksum_key)) {
    reader.require(has_valid_checksum(bytes),
                   "its checksum does not match its content; use a backup copy, or train again");
    result.checksum = content.metadata.at(checksum_key);
  } else {
    reader.require(version < first_version_with_checksum, "it has no checksum; use a backup copy, or train again");
    result.warning = file +
                     ": the model has format version 1, which has no checksum, so damage to the file may go "
                     "undetected; train again, or resume training, to write a file with a checksum";
  }
  read_feature_schema(reader, result.features);
  if (has_anova_model(reader)) {
    result.anova = read_anova_model(reader, static_cast<Index>(result.features.columns().size()));
  } else {
    read_model(reader, result.features, result.model);
    result.sampled = read_sampled_posterior(reader, result.model);
    if (reader.tensor("weights").dtype == dtype_of<float>()) result.precision = Precision::single_precision;
  }
  result.training = metadata_with_prefix(content, training_prefix);
  result.annotations = metadata_with_prefix(content, annotation_prefix);
  for (const auto& [name, tensor] : content.views)
    if (name.starts_with(state_prefix))
      result.state[name.substr(std::string(state_prefix).size())] = reader.values<double>(name);
  return result;
}

void ModelFile::save(const std::string& path) const {
  OutputFile file(path);
  write([&](std::string_view part) { file.write(part); });
  file.commit();
}

ModelFile ModelFile::load(const std::string& path) { return from_bytes(read_bytes(path), path); }

std::string ModelFile::read_bytes(const std::string& path) {
  const auto fail = [&](const std::string& error) { throw DataError(path, 0, 0, "the model " + error); };
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  if (kind == std::filesystem::file_type::not_found) fail("cannot be opened: there is no such file");
  if (kind == std::filesystem::file_type::directory) fail("cannot be opened: the path is a folder");
  // Opening a named pipe without a writer blocks, and interrupts are not polled here.
  if (kind != std::filesystem::file_type::regular)
    fail("cannot be opened: expected a regular file, got a pipe or a device");
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || fstat(file.number(), &status) != 0)
    fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (static_cast<double>(size) > usable_memory_bytes())
    fail("is larger than the memory that this process may use; check that the file is a model");
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t received = read(file.number(), bytes.data() + done, size - done);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) fail("cannot be read completely");
    done += static_cast<std::size_t>(received);
  }
  return bytes;
}

}  // namespace dyad
