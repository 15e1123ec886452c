#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <dyad/class_predictor.h>
#include <dyad/error.h>
#include <dyad/evaluate.h>
#include <dyad/inspect.h>
#include <dyad/train.h>

#include "predictions.h"
#include "scratch_folder.h"
#include "serialization/checksum.h"
#include "serialization/model_file.h"

namespace dyad::fuzz {
namespace {

/// True if the bytes are a valid model file. Writing and reading a valid model must reproduce its bytes.
bool is_valid_model(const std::string& bytes) {
  try {
    const ModelFile model = ModelFile::from_bytes(bytes, "model");
    const std::string written = model.to_bytes();
    require(ModelFile::from_bytes(written, "written").to_bytes() == written,
            "a written model is read and written unchanged");
    return true;
  } catch (const DataError&) {
    return false;
  }
}

/// Runs the action. DataError and std::invalid_argument are allowed outcomes.
template <typename Action>
void allow_errors(Action&& action) {
  allow_exception<DataError>([&] { allow_exception<std::invalid_argument>(action); });
}

std::string quoted(const std::string& cell) {
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

/// A valid target for the task of the model.
std::string target_for(const ModelFile& file, bool positive) {
  const Target& target = file.features.target;
  if (target.task == Task::regression) return positive ? "1" : "0";
  return positive ? target.positive : target.negative;
}

/// Two csv rows with the columns of the model.
std::string csv_for(const ModelFile& file) {
  const FeatureMap& map = file.features;
  std::string text = quoted(map.target.name);
  if (!map.weight.empty()) text += "," + quoted(map.weight);
  for (const Column& column : map.columns()) text += "," + quoted(column.name);
  for (const bool positive : {false, true}) {
    text += "\n" + quoted(target_for(file, positive));
    if (!map.weight.empty()) text += ",1";
    for (const Column& column : map.columns())
      text += column.role == Column::Role::numeric ? ",0.5" : positive ? ",x" : ",y";
  }
  return text + "\n";
}

/// Two libsvm rows.
std::string libsvm_for(const ModelFile& file) {
  return target_for(file, true) + " 1:1 2:0.5\n" + target_for(file, false) + " 2:2 7:1\n";
}

/// Array of doubles in npy format, version 1.0. The magic number, version, length (0x76 = 118) and text of the header
/// take 128 bytes.
std::string npy_of(const std::vector<double>& values, Index columns) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" +
                       std::to_string(static_cast<Index>(values.size()) / columns) + ", " + std::to_string(columns) +
                       "), }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
}

/// Inspects the model, predicts rows of all formats with it, and resumes its training.
void use(const std::string& bytes) {
  static const ScratchFolder folder;
  const std::string path = folder.write("model", bytes);
  const ModelFile file = ModelFile::from_bytes(bytes, "model");
  const MemoryFile csv(csv_for(file));
  const MemoryFile libsvm(libsvm_for(file));
  const Index columns = std::max<Index>(1, file.features.dim());
  const MemoryFile npy(npy_of(std::vector<double>(static_cast<std::size_t>(2 * columns), 0.5), columns));
  const MemoryFile npy_targets(npy_of({0, 1}, 1));
  allow_errors([&] { (void)inspect(path, 5); });
  for (const Format format : {Format::libsvm, Format::csv, Format::npy}) {
    PredictOptions predicting;
    predicting.data.paths = {(format == Format::csv ? csv : format == Format::npy ? npy : libsvm).path()};
    predicting.data.format = format;
    predicting.model_path = path;
    predicting.output_path = folder.file("predictions");
    predicting.threads = 1;
    for (const bool deviations : {false, true})
      allow_errors([&] {
        predicting.deviations = deviations;
        const PredictSummary summary = predict(predicting);
        require_finite_predictions(folder.content("predictions"), summary.rows, deviations);
      });
    allow_errors([&] {
      TrainOptions training;
      training.data = predicting.data;
      if (format == Format::npy) training.data.target_paths = {npy_targets.path()};
      training.model_path = path;
      training.resume = true;
      training.threads = 1;
      (void)train(training);
      require(is_valid_model(folder.content("model")), "a resumed model is valid");
    });
  }
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  std::string bytes = text_of(data, size);
  dyad::write_checksum(bytes);  // otherwise every mutation is rejected because of its checksum
  if (is_valid_model(bytes)) use(bytes);
  dyad::fuzz::allow_exception<dyad::DataError>([&] { (void)dyad::ClassPredictor::from_bytes(bytes); });
  return 0;
}
