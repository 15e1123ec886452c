#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "base/output_file.h"
#include "model/model_container.h"
#include "model/model_file.h"
#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

using Texts = std::map<std::string, std::string>;
using Parts = std::map<std::string, nb::bytes>;

constexpr const char* in_memory = "the model";

/// Replaces the file as a whole, or leaves it as it was.
void write_file(const std::string& path, const nb::bytes& bytes) {
  const std::string_view content(bytes.c_str(), bytes.size());
  std::string failure;
  int number = 0;
  {
    const nb::gil_scoped_release release;
    try {
      OutputFile file(path);
      file.write(content);
      file.commit();
    } catch (const std::system_error& error) {
      failure = error.what();
      number = error.code().value();
    } catch (const std::runtime_error& error) {
      failure = error.what();
    }
  }
  if (failure.empty()) return;
  const nb::object arguments =
      number == 0 ? nb::object(nb::make_tuple(failure)) : nb::object(nb::make_tuple(number, failure));
  PyErr_SetObject(PyExc_OSError, arguments.ptr());
  throw nb::python_error();
}

nb::bytes read_file(const std::string& path) {
  std::string bytes;
  {
    const nb::gil_scoped_release release;
    bytes = ModelFile::read_bytes(path);
  }
  return bytes_of(bytes);
}

nb::bytes annotate(const nb::bytes& model, const Texts& annotations) {
  ModelFile file = ModelFile::from_bytes(text_of(model), in_memory);
  file.annotations = annotations;
  return bytes_of(file.to_bytes());
}

nb::bytes pack(const Texts& annotations, const Parts& parts) {
  ModelContainer container;
  container.annotations = annotations;
  for (const auto& [name, bytes] : parts) container.parts[name] = text_of(bytes);
  return bytes_of(container.to_bytes());
}

std::pair<Texts, Parts> unpack(const nb::bytes& bytes, const std::string& file) {
  const ModelContainer container = ModelContainer::from_bytes(text_of(bytes), file);
  Parts parts;
  for (const auto& [name, content] : container.parts) parts.emplace(name, bytes_of(content));
  return {container.annotations, parts};
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("write_file", &write_file, "path"_a, "content"_a);
  module.def("read_file", &read_file, "path"_a);
  module.def("annotate", &annotate, "model"_a, "annotations"_a);
  module.def("pack", &pack, "annotations"_a, "parts"_a);
  module.def("unpack", &unpack, "content"_a, "file"_a);
}

}  // namespace dyad::python
