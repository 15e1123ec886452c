#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dyad/dataset.h>
#include <dyad/distributed.h>

#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

RawReader open_files(const std::vector<std::string>& paths, const std::optional<std::string>& format,
                     const std::vector<std::string>& target_paths, const std::vector<std::string>& categorical,
                     Index rows, const std::optional<Index>& max_line_bytes, const std::optional<Index>& max_columns) {
  const auto parsed_format = parse_choice<Format>(
      format, {{"csv", Format::csv}, {"tsv", Format::tsv}, {"libsvm", Format::libsvm}, {"npy", Format::npy}}, "format");
  DataOptions data{.paths = paths, .format = parsed_format, .target_paths = target_paths};
  data.limits.max_line_bytes = max_line_bytes.value_or(data.limits.max_line_bytes);
  data.limits.max_columns = max_columns.value_or(data.limits.max_columns);
  return {data, categorical, rows};
}

/// Returns the arrays of the next block by name, or None at the end of the data.
nb::object next_block(RawReader& reader) {
  RawRows rows;
  bool has_block = false;
  SignalCheck interrupted;
  try {
    const nb::gil_scoped_release release;
    has_block = reader.next(rows, [&] { return interrupted(); });
  } catch (...) {
    interrupted.rethrow();
    throw;
  }
  if (!has_block) return nb::none();
  nb::dict fields;
  nb::list columns;
  for (RawColumn& column : rows.columns)
    columns.append(nb::make_tuple(
        column.name, column.is_categorical ? to_array(std::move(column.codes)) : to_array(std::move(column.numbers)),
        column.is_categorical ? nb::cast(column.categories) : nb::none()));
  fields["columns"] = columns;
  fields["count"] = rows.count;
  fields["width"] = rows.width;
  fields["offsets"] = to_array(std::move(rows.offsets));
  fields["indices"] = to_array(std::move(rows.indices));
  fields["values"] = to_array(std::move(rows.values));
  fields["targets"] = to_array(std::move(rows.targets));
  return fields;
}

nb::bytes compute_statistics(const nb::bytes& model, const ArrayRows& rows, int threads) {
  SignalCheck interrupted;
  const std::string file = to_string(model);
  std::string statistics;
  {
    const nb::gil_scoped_release release;
    statistics = partial_statistics(file, rows.rows(), threads, [&] { return interrupted(); }).to_bytes();
  }
  interrupted.rethrow();
  return to_bytes(statistics);
}

nb::bytes add_statistics(const nb::bytes& left, const nb::bytes& right) {
  Statistics sum = Statistics::from_bytes(to_string(left));
  sum += Statistics::from_bytes(to_string(right));
  return to_bytes(sum.to_bytes());
}

nb::tuple update_model(const nb::bytes& model, const nb::bytes& statistics) {
  const StatisticsUpdate update = apply_statistics(to_string(model), Statistics::from_bytes(to_string(statistics)));
  nb::dict fields;
  fields["rmse"] = update.rmse;
  fields["is_line_search"] = update.is_line_search;
  fields["steps_tried"] = update.steps_tried;
  fields["steps_taken"] = update.steps_taken;
  return nb::make_tuple(to_bytes(update.model), fields);
}

}  // namespace

void bind_streams(nb::module_& module) {
  nb::class_<RawReader>(module, "RawReader").def("next", &next_block);
  module.def("open_files", &open_files, "paths"_a, "format"_a.none(), "target_paths"_a, "categorical"_a, "rows"_a,
             "max_line_bytes"_a = nb::none(), "max_columns"_a = nb::none());
  module.def("partial_statistics", &compute_statistics, "model"_a, "rows"_a, "threads"_a = 0);
  module.def("add_statistics", &add_statistics, "left"_a, "right"_a);
  module.def("apply_statistics", &update_model, "model"_a, "statistics"_a);
  module.def(
      "count_rows", [](const nb::bytes& bytes) { return Statistics::from_bytes(to_string(bytes)).rows(); },
      "statistics"_a);
}

}  // namespace dyad::python
