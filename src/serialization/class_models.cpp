#include "serialization/class_models.h"

#include <cmath>
#include <limits>
#include <set>

#include <dyad/error.h>

#include "encoding/target.h"
#include "io/parse_number.h"
#include "serialization/bounded_json.h"
#include "serialization/json_text.h"
#include "serialization/model_container.h"
#include "serialization/safetensors.h"

namespace dyad {
namespace {

/// JSON number of a label: its text, which is a number with the fewest digits, or the text as a string.
JsonText label_json(const std::string& label, const std::string& type) {
  double value = 0;
  if (type == "text" || !parse_number(label, value)) return label;
  return type == "integer" ? JsonText(static_cast<long long>(value)) : JsonText(value);
}

}  // namespace

std::string ClassModels::label_type() const {
  constexpr double max_exact_integer = 9007199254740992;  // 2^53: double has 53 bits of significand
  bool are_integers = true;
  for (const std::string& label : labels) {
    double value = 0;
    if (!parse_number(label, value) || !std::isfinite(value) || label != format_shortest(value)) return "text";
    are_integers = are_integers && value == std::floor(value) && std::abs(value) <= max_exact_integer;
  }
  return are_integers ? "integer" : "number";
}

std::string ClassModels::to_bytes() const {
  const std::string type = label_type();
  std::vector<JsonText> values;
  for (const std::string& label : labels) values.push_back(label_json(label, type));
  ModelContainer container;
  container.classes = JsonText::object({{"target", target},
                                        {"label_type", type},
                                        {"labels", JsonText::array(values)},
                                        {"temperature", temperature},
                                        {"precision", precision}})
                          .text();
  container.annotations = annotations;
  container.parts = parts;
  return container.to_bytes();
}

ClassModels ClassModels::from_bytes(const std::string& bytes, const std::string& file) {
  const auto require = [&](bool condition, const char* reason) {
    if (!condition)
      throw DataError(
          file, 0, 0,
          std::string("the model of several classes is damaged: ") + reason + "; use a backup copy, or train again");
  };
  ModelContainer container = ModelContainer::from_bytes(bytes, file);
  require(!container.classes.empty(), "it has no list of classes");
  const JsonDocument document(container.classes);
  const nlohmann::json& root = document.root();
  require(root.is_object() && root.contains("labels") && root["labels"].is_array() && root.contains("temperature") &&
              root["temperature"].is_number() && root.contains("precision") && root["precision"].is_number() &&
              root.contains("target") && root["target"].is_string(),
          "its list of classes is invalid");
  ClassModels result;
  result.target = root["target"].get<std::string>();
  for (const nlohmann::json& label : root["labels"]) {
    require(label.is_string() || label.is_number(), "a label is neither a text nor a number");
    result.labels.push_back(label.is_string() ? label.get<std::string>() : format_shortest(label.get<double>()));
  }
  result.temperature = root["temperature"].get<double>();
  result.precision = root["precision"].get<double>();
  require(result.temperature >= 0 && result.temperature <= std::numeric_limits<double>::max() &&
              result.precision >= 0 && result.precision <= std::numeric_limits<double>::max(),
          "its temperature is invalid");
  require(std::set<std::string>(result.labels.begin(), result.labels.end()).size() == result.labels.size(),
          "a label occurs twice");
  require(result.labels.size() > 2 && result.labels.size() == container.parts.size(),
          "it does not have one model for each class");
  result.parts = std::move(container.parts);
  result.checksum = container.checksum;
  result.annotations = std::move(container.annotations);
  return result;
}

bool ClassModels::is_class_file(const std::string& bytes) {
  const std::string_view header = Safetensors::header_of(bytes);
  return header.find("\"dyad-container\"") != std::string_view::npos &&
         header.find("\"classes\":") != std::string_view::npos;
}

}  // namespace dyad
