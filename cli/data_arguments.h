#pragma once

#include <dyad/dataset.h>
#include <dyad/evaluate.h>
#include <dyad/types.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "enum_names.h"

/// \file
/// Options and output of the subcommands that read rows.

namespace dyad::cli {

/// Adds DATA, --format, --target-file and the limits on rows.
void add_data(CLI::App& subcommand, DataOptions& data, const std::string& description);

/// Adds a list of column names, separated by commas or given by repeating the option.
void add_columns(CLI::App& subcommand, const std::string& name, std::vector<std::string>& columns,
                 const std::string& description);

/// Adds a number of bytes with an optional suffix K, M, G or T (powers of 1000).
void add_size(CLI::App& subcommand, const std::string& name, double& bytes, const std::string& description);

/// JSON fields that all subcommands report: rows, time, memory and outcome.
template <typename Summary>
nlohmann::ordered_json run_json(const Summary& summary) {
  nlohmann::ordered_json fields;
  fields["rows"] = summary.rows;
  fields["row_reads"] = summary.rows;
  fields["seconds"] = summary.seconds;
  fields["rows_per_second"] = static_cast<double>(summary.rows) / summary.seconds;
  fields["peak_rss_bytes"] = summary.peak_rss_bytes;
  fields["outcome"] = choice_name(outcomes, summary.outcome);
  return fields;
}

/// JSON object {rmse, mae, r2} or {logloss, auc, accuracy}, with the loss of the best constant.
nlohmann::ordered_json metrics_json(const Metrics& metrics);

/// Metrics on one line: "rmse 0.47, mae 0.35, r2 0.78 (constant: rmse 1.02)".
std::string format_metrics(const Metrics& metrics);

/// Rounded count: "1.23M", "34k", "567".
std::string format_count(double count);

}  // namespace dyad::cli
