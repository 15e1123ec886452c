#include "data_arguments.h"

#include <cctype>
#include <cmath>
#include <string_view>

#include "enum_names.h"

namespace dyad::cli {

void add_data(CLI::App& verb, DataOptions& data, const std::string& description) {
  verb.add_option("DATA", data.paths, description)->required()->type_name("FILE...");
  add_choice(verb, "--format", data.format, optional_choices(formats),
             "Default: by the name (.svm .libsvm .csv .tsv .npy, with .gz or .zst behind it)");
  verb.add_option("--target-file", data.target_paths, "npy: the targets, an array for each file of rows")
      ->type_name("FILE")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_number(verb, "--max-line-bytes", data.limits.max_line_bytes, "N",
             "Text: refuse a longer row; default 67108864 (256 for each of the default --max-columns)");
  add_number(verb, "--max-columns", data.limits.max_columns, "N",
             "csv, tsv, npy: refuse more columns; default 262144 (training takes about 9.5 kB a column at rank 8)");
}

void add_columns(CLI::App& verb, const std::string& name, std::vector<std::string>& columns,
                 const std::string& description) {
  verb.add_option(name, columns, description)->type_name("COLS")->delimiter(',')->allow_extra_args(false);
}

void add_size(CLI::App& verb, const std::string& name, double& bytes, const std::string& description) {
  const auto read = [&bytes, name](const std::string& given) {
    std::string number = given;
    if (number.size() > 1 && (number.back() == 'B' || number.back() == 'b')) number.pop_back();
    double unit = 1;
    constexpr std::string_view letters = "KMGT";
    const char last = number.empty() ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(number.back())));
    if (const auto place = letters.find(last); place != std::string_view::npos) {
      unit = std::pow(1000.0, static_cast<double>(place + 1));
      number.pop_back();
    }
    const auto value = parse_number<double>(number);
    if (!value || !(*value >= 0) || !std::isfinite(*value * unit))
      throw CLI::ValidationError(name, fmt::format("expected a size such as 0, 200M or 1.5G, got '{}'", given));
    bytes = *value * unit;
  };
  verb.add_option_function<std::string>(name, read, description)->type_name("SIZE");
}

nlohmann::ordered_json json_of(const Metrics& metrics) {
  nlohmann::ordered_json fields;
  if (metrics.task == Task::classification)
    fields = {{"logloss", metrics.logloss}, {"auc", metrics.auc}, {"accuracy", metrics.accuracy}};
  else
    fields = {{"rmse", metrics.rmse}, {"mae", metrics.mae}, {"r2", metrics.r2}};
  fields[loss_name(metrics.task)] = metrics.loss;
  fields["best_constant"] = metrics.of_best_constant;
  fields["weight"] = metrics.weight;
  return fields;
}

std::string sentence_of(const Metrics& metrics) {
  if (metrics.task == Task::classification)
    return fmt::format("logloss {:.5f}, auc {:.4f}, accuracy {:.4f} (the best constant: logloss {:.5f})",
                       metrics.logloss, metrics.auc, metrics.accuracy, metrics.of_best_constant);
  const std::string name = loss_name(metrics.task);
  return fmt::format("{}rmse {:.6g}, mae {:.6g}, r2 {:.4f} (the best constant: {} {:.6g})",
                     name == "rmse" ? "" : fmt::format("{} {:.6g}, ", name, metrics.loss), metrics.rmse, metrics.mae,
                     metrics.r2, name, metrics.of_best_constant);
}

std::string short_count(double count) {
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e3) return fmt::format("{:.0f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

}  // namespace dyad::cli
