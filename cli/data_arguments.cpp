#include "data_arguments.h"

#include <cctype>
#include <cmath>
#include <string_view>

#include "enum_names.h"

namespace dyad::cli {

void add_data(CLI::App& subcommand, DataOptions& data, const std::string& description) {
  subcommand.add_option("DATA", data.paths, description)->required()->type_name("FILE...");
  add_choice(subcommand, "--format", data.format, optional_choices(formats),
             "File format; default: by extension (.svm .libsvm .csv .tsv .npy, also with .gz or .zst)");
  subcommand.add_option("--target-file", data.target_paths, "npy: array of targets, one file for each DATA file")
      ->type_name("FILE")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_number(subcommand, "--max-line-bytes", data.limits.max_line_bytes, "N",
             "Text: largest accepted row in bytes; default 67108864 (256 per column of the default --max-columns)");
  add_number(
      subcommand, "--max-columns", data.limits.max_columns, "N",
      "csv, tsv, npy: largest accepted number of columns; default 262144 (training needs about 9.5 kB per column "
      "at rank 8)");
}

void add_columns(CLI::App& subcommand, const std::string& name, std::vector<std::string>& columns,
                 const std::string& description) {
  subcommand.add_option(name, columns, description)->type_name("COLS")->delimiter(',')->allow_extra_args(false);
}

void add_size(CLI::App& subcommand, const std::string& name, double& bytes, const std::string& description) {
  const auto parse = [&bytes, name](const std::string& text) {
    std::string number = text;
    if (number.size() > 1 && (number.back() == 'B' || number.back() == 'b')) number.pop_back();
    double unit = 1;
    constexpr std::string_view suffixes = "KMGT";
    const char last = number.empty() ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(number.back())));
    if (const auto position = suffixes.find(last); position != std::string_view::npos) {
      unit = std::pow(1000.0, static_cast<double>(position + 1));
      number.pop_back();
    }
    const auto value = parse_number<double>(number);
    if (!value || !(*value >= 0) || !std::isfinite(*value * unit))
      throw CLI::ValidationError(name, fmt::format("expected a size such as 0, 200M or 1.5G, got '{}'", text));
    bytes = *value * unit;
  };
  subcommand.add_option_function<std::string>(name, parse, description)->type_name("SIZE");
}

nlohmann::ordered_json metrics_json(const Metrics& metrics) {
  nlohmann::ordered_json fields;
  if (metrics.task == Task::classification)
    fields = {{"logloss", metrics.logloss}, {"auc", metrics.auc}, {"accuracy", metrics.accuracy}};
  else
    fields = {{"rmse", metrics.rmse}, {"mae", metrics.mae}, {"r2", metrics.r2}};
  fields[loss_name(metrics.task)] = metrics.loss;
  fields["best_constant"] = metrics.constant_loss;
  fields["weight"] = metrics.weight;
  for (const ClassMetrics& one : metrics.classes)
    fields["classes"].push_back({{"label", one.label},
                                 {"weight", one.weight},
                                 {"auc", one.auc},
                                 {"precision", one.precision},
                                 {"recall", one.recall}});
  return fields;
}

std::string format_metrics(const Metrics& metrics) {
  if (metrics.task == Task::classification)
    return fmt::format("logloss {:.5f}, auc {:.4f}, accuracy {:.4f} (constant: logloss {:.5f})", metrics.logloss,
                       metrics.auc, metrics.accuracy, metrics.constant_loss);
  const std::string name = loss_name(metrics.task);
  return fmt::format("{}rmse {:.6g}, mae {:.6g}, r2 {:.4f} (constant: {} {:.6g})",
                     name == "rmse" ? "" : fmt::format("{} {:.6g}, ", name, metrics.loss), metrics.rmse, metrics.mae,
                     metrics.r2, name, metrics.constant_loss);
}

std::string format_count(double count) {
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e3) return fmt::format("{:.0f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

}  // namespace dyad::cli
