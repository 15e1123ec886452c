#pragma once

#include <dyad/data.h>
#include <dyad/metrics.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "enum_names.h"

namespace dyad::cli {

/// DATA and what goes with it, for every verb that reads rows.
void add_data(CLI::App& verb, DataOptions& data, const std::string& description);

/// A list of column names: a,b,c, or the option several times.
void add_columns(CLI::App& verb, const std::string& name, std::vector<std::string>& columns,
                 const std::string& description);

/// What every verb that goes through rows reports.
template <typename Summary>
nlohmann::ordered_json json_of_run(const Summary& summary) {
  nlohmann::ordered_json fields;
  fields["rows"] = summary.rows;
  fields["row_reads"] = summary.rows;
  fields["seconds"] = summary.seconds;
  fields["rows_per_second"] = static_cast<double>(summary.rows) / summary.seconds;
  fields["peak_rss_bytes"] = summary.peak_rss_bytes;
  fields["outcome"] = word_for(outcomes, summary.outcome);
  return fields;
}

/// A number of bytes, with K, M, G or T behind it for thousands, millions and so on.
void add_size(CLI::App& verb, const std::string& name, double& bytes, const std::string& description);

/// {rmse, mae, r2} or {logloss, auc, accuracy}, and the loss of the best constant.
nlohmann::ordered_json json_of(const Metrics& metrics);

/// "rmse 0.47, mae 0.35, r2 0.78"
std::string sentence_of(const Metrics& metrics);

/// "1.2M", "34k", "567"
std::string short_count(double count);

}  // namespace dyad::cli
