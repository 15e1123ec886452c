#include <cmath>

#include <dyad/data_error.h>
#include <dyad/inspect.h>
#include <dyad/predict.h>
#include <dyad/train.h>

#include "model/model_file.h"
#include "predictions.h"
#include "scratch_folder.h"

namespace dyad::fuzz {
namespace {

/// Whether it can be read; what can must survive another round.
bool reads(const std::string& bytes) {
  try {
    const ModelFile model = ModelFile::from_bytes(bytes, "model");
    const std::string again = model.to_bytes();
    require(ModelFile::from_bytes(again, "again").to_bytes() == again, "what was read is written and read the same");
    return true;
  } catch (const DataError&) {
    return false;
  }
}

template <typename Action>
void may_refuse_use(Action&& action) {
  may_refuse<DataError>([&] { may_refuse<std::invalid_argument>(action); });
}

/// A stranger's model, used for everything that a model is for.
void use(const std::string& bytes) {
  static const ScratchFolder folder;
  const std::string path = folder.write("model", bytes);
  const MemoryFile libsvm("1 0:1 1:0.5\n0 1:2 7:1\n");
  const MemoryFile csv("y,a,b\n1,x,0.5\n2,y,7\n");
  may_refuse_use([&] { (void)inspect(path, 5); });
  for (const Format format : {Format::libsvm, Format::csv}) {
    PredictOptions predicting;
    predicting.data.paths = {(format == Format::csv ? csv : libsvm).path()};
    predicting.data.format = format;
    predicting.model_path = path;
    predicting.output_path = folder.file("predictions");
    predicting.threads = 1;
    for (const bool deviations : {false, true})
      may_refuse_use([&] {
        predicting.deviations = deviations;
        const PredictSummary summary = predict(predicting);
        require_finite_predictions(folder.content("predictions"), summary.rows, deviations);
      });
    may_refuse_use([&] {
      TrainOptions training;
      training.data = predicting.data;
      training.model_path = path;
      training.resume = true;
      training.threads = 1;
      (void)train(training);
      require(reads(folder.content("model")), "a model that was resumed can be read");
    });
  }
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string bytes = text_of(data, size);
  if (reads(bytes)) use(bytes);
  return 0;
}
