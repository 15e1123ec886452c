#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dyad/raw_rows.h>
#include <dyad/statistics.h>

#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

RawReader open_files(const std::vector<std::string>& paths, const std::optional<std::string>& format,
                     const std::vector<std::string>& target_paths, const std::vector<std::string>& categorical,
                     Index rows, const std::optional<Index>& max_line_bytes, const std::optional<Index>& max_columns) {
  const auto chosen_format = chosen<Format>(
      format, {{"csv", Format::csv}, {"tsv", Format::tsv}, {"libsvm", Format::libsvm}, {"npy", Format::npy}}, "format");
  DataOptions data{.paths = paths, .format = chosen_format, .target_paths = target_paths};
  data.limits.max_line_bytes = max_line_bytes.value_or(data.limits.max_line_bytes);
  data.limits.max_columns = max_columns.value_or(data.limits.max_columns);
  return {data, categorical, rows};
}

/// The arrays of a block by name; None at the end.
nb::object next_block(RawReader& reader) {
  RawRows rows;
  bool is_there = false;
  Interruption interruption;
  try {
    const nb::gil_scoped_release release;
    is_there = reader.next(rows, [&] { return interruption(); });
  } catch (...) {
    interruption.finish();
    throw;
  }
  if (!is_there) return nb::none();
  nb::dict fields;
  nb::list columns;
  for (RawColumn& column : rows.columns)
    columns.append(nb::make_tuple(
        column.name, column.is_category ? array_of(std::move(column.codes)) : array_of(std::move(column.numbers)),
        column.is_category ? nb::cast(column.categories) : nb::none()));
  fields["columns"] = columns;
  fields["count"] = rows.count;
  fields["width"] = rows.width;
  fields["offsets"] = array_of(std::move(rows.offsets));
  fields["indices"] = array_of(std::move(rows.indices));
  fields["values"] = array_of(std::move(rows.values));
  fields["targets"] = array_of(std::move(rows.targets));
  return fields;
}

nb::bytes gather(const nb::bytes& model, const ArrayRows& rows, int threads) {
  Interruption interruption;
  const std::string file = text_of(model);
  std::string gathered;
  {
    const nb::gil_scoped_release release;
    gathered = partial_statistics(file, rows.rows(), threads, [&] { return interruption(); }).to_bytes();
  }
  interruption.finish();
  return bytes_of(gathered);
}

nb::bytes add(const nb::bytes& a, const nb::bytes& b) {
  Statistics sum = Statistics::from_bytes(text_of(a));
  sum += Statistics::from_bytes(text_of(b));
  return bytes_of(sum.to_bytes());
}

nb::tuple apply(const nb::bytes& model, const nb::bytes& statistics) {
  const StatisticsApplied applied = apply_statistics(text_of(model), Statistics::from_bytes(text_of(statistics)));
  nb::dict fields;
  fields["rmse"] = applied.rmse;
  fields["is_trying"] = applied.is_trying;
  fields["steps_tried"] = applied.steps_tried;
  fields["steps_taken"] = applied.steps_taken;
  return nb::make_tuple(bytes_of(applied.model), fields);
}

}  // namespace

void bind_streams(nb::module_& module) {
  nb::class_<RawReader>(module, "RawReader").def("next", &next_block);
  module.def("open_files", &open_files, "paths"_a, "format"_a.none(), "target_paths"_a, "categorical"_a, "rows"_a,
             "max_line_bytes"_a = nb::none(), "max_columns"_a = nb::none());
  module.def("gather_statistics", &gather, "model"_a, "rows"_a, "threads"_a = 0);
  module.def("add_statistics", &add, "a"_a, "b"_a);
  module.def("apply_statistics", &apply, "model"_a, "statistics"_a);
  module.def("rows_of_statistics",
             [](const nb::bytes& bytes) { return Statistics::from_bytes(text_of(bytes)).rows(); });
}

}  // namespace dyad::python
