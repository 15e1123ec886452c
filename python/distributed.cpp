#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <dyad/distributed.h>

#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

void add_rows(Worker& worker, const ArrayRows& rows, const AnyArray& hashes) {
  const std::span<const std::uint64_t> hash_values = contiguous<std::uint64_t>(hashes, "hashes");
  const nb::gil_scoped_release release;
  worker.add_rows(rows.rows(), hash_values);
}

/// `send` and `progress` are called with the GIL. The bytes that `send` returns are the sum of all responses.
nb::tuple train_on_workers(const nb::bytes& model, const std::string& solver, double trained_share,
                           Index max_data_passes, const std::function<nb::bytes(nb::bytes)>& send,
                           const std::function<void(std::string, double, double, double)>& progress) {
  DistributedOptions options;
  options.solver = *parse_choice<Solver>(
      solver, {{"auto", Solver::automatic}, {"kalman", Solver::kalman}, {"newton", Solver::newton}}, "solver");
  options.trained_share = trained_share;
  options.max_data_passes = max_data_passes;
  options.send = [&](const std::string& request) {
    const nb::gil_scoped_acquire acquire;
    return Statistics::from_bytes(to_string(send(to_bytes(request))));
  };
  options.progress = [&](const DistributedProgress& step) {
    const nb::gil_scoped_acquire acquire;
    progress(step.level, step.share, step.loss, step.held_out);
  };
  const std::string start = to_string(model);
  DistributedSummary summary;
  {
    const nb::gil_scoped_release release;
    summary = train_distributed(start, options);
  }
  nb::dict fields;
  fields["origin"] = summary.origin;
  fields["requests"] = summary.requests;
  fields["rows"] = summary.rows;
  fields["one_pass"] = summary.one_pass;
  fields["multi_pass"] = summary.multi_pass;
  return nb::make_tuple(to_bytes(summary.model), fields);
}

}  // namespace

void bind_distributed(nb::module_& module) {
  nb::class_<Worker>(module, "Worker")
      .def(
          "__init__",
          [](Worker* self, const nb::bytes& model, int threads) { new (self) Worker(to_string(model), threads); },
          "model"_a, "threads"_a = 1)
      .def(
          "handle", [](Worker& worker, const nb::bytes& request) { worker.handle(to_string(request)); }, "request"_a)
      .def("add_rows", &add_rows, "rows"_a, "hashes"_a.noconvert())
      .def("response", [](const Worker& worker) { return to_bytes(worker.response().to_bytes()); });
  module.def(
      "hash_rows", [](const ArrayRows& rows) { return to_array(hash_rows(rows.rows())); }, "rows"_a);
  module.def(
      "start_workers", [](const nb::bytes& model) { return to_bytes(start_workers(to_string(model))); }, "model"_a);
  module.def("train_distributed", &train_on_workers, "model"_a, "solver"_a, "trained_share"_a, "max_data_passes"_a,
             "send"_a, "progress"_a);
}

}  // namespace dyad::python
