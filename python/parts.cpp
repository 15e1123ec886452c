#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <dyad/parts.h>

#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

void add_rows(Part& part, const ArrayRows& rows, const AnyArray& hashes) {
  const std::span<const std::uint64_t> all = contiguous<std::uint64_t>(hashes, "hashes");
  const nb::gil_scoped_release release;
  part.add(rows.rows(), all);
}

nb::object hashes_of(const ArrayRows& rows) { return array_of(row_hashes(rows.rows())); }

nb::tuple learn_parts(const nb::bytes& model, const std::string& solver, double share, Index most_looks,
                      const std::function<nb::bytes(nb::bytes)>& ask,
                      const std::function<void(std::string, double, double, double)>& progress) {
  PartsOptions options;
  options.solver = *chosen<Solver>(
      solver, {{"auto", Solver::automatic}, {"kalman", Solver::kalman}, {"newton", Solver::newton}}, "solver");
  options.share = share;
  options.most_looks = most_looks;
  options.ask = [&](const std::string& question) {
    const nb::gil_scoped_acquire acquire;
    return Statistics::from_bytes(text_of(ask(bytes_of(question))));
  };
  options.progress = [&](const PartsStep& step) {
    const nb::gil_scoped_acquire acquire;
    progress(step.level, step.share, step.loss, step.held_out);
  };
  const std::string begun = text_of(model);
  PartsSummary summary;
  {
    const nb::gil_scoped_release release;
    summary = learn_from_parts(begun, options);
  }
  nb::dict fields;
  fields["origin"] = summary.origin;
  fields["questions"] = summary.questions;
  fields["rows"] = summary.rows;
  fields["one_pass"] = summary.one_pass;
  fields["refined"] = summary.refined;
  return nb::make_tuple(bytes_of(summary.model), fields);
}

}  // namespace

void bind_parts(nb::module_& module) {
  nb::class_<Part>(module, "Part")
      .def(
          "__init__", [](Part* self, const nb::bytes& model, int threads) { new (self) Part(text_of(model), threads); },
          "model"_a, "threads"_a = 1)
      .def(
          "ask", [](Part& part, const nb::bytes& question) { part.ask(text_of(question)); }, "question"_a)
      .def("add", &add_rows, "rows"_a, "hashes"_a.noconvert())
      .def("answer", [](const Part& part) { return bytes_of(part.answer().to_bytes()); });
  module.def("row_hashes", &hashes_of, "rows"_a);
  module.def(
      "begin_parts", [](const nb::bytes& model) { return bytes_of(begin_parts(text_of(model))); }, "model"_a);
  module.def("learn_from_parts", &learn_parts, "model"_a, "solver"_a, "share"_a, "most_looks"_a, "ask"_a, "progress"_a);
}

}  // namespace dyad::python
