#include <map>
#include <stdexcept>
#include <string>
#include <system_error>

#include <nanobind/stl/string.h>

#include "base/output_file.h"
#include "serialization/checksum.h"
#include "serialization/class_models.h"
#include "serialization/model_container.h"
#include "serialization/model_file.h"
#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

// The arguments of these functions are Python objects, which the functions convert themselves. Conversions by nanobind
// are noexcept: if an allocation fails in them, the process ends.

constexpr const char* in_memory_name = "the model";  ///< name of a model without a path in error messages

std::string to_utf8(const nb::str& text) {
  Py_ssize_t size = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (characters == nullptr) throw nb::python_error();
  return {characters, static_cast<std::size_t>(size)};
}

std::map<std::string, std::string> to_map(const nb::dict& texts) {
  std::map<std::string, std::string> result;
  for (const auto& [name, text] : texts) result[to_utf8(nb::cast<nb::str>(name))] = to_utf8(nb::cast<nb::str>(text));
  return result;
}

/// Returns a path in the encoding of the file system.
std::string to_path(const nb::bytes& path) {
  std::string text = to_string(path);
  if (text.find('\0') != std::string::npos) throw std::invalid_argument("path must not contain a null character");
  return text;
}

/// Raises OSError. `number`: errno; 0: unknown.
[[noreturn]] void raise_os_error(int number, const std::string& what) {
  nb::object text = nb::steal(PyUnicode_DecodeFSDefaultAndSize(what.data(), static_cast<Py_ssize_t>(what.size())));
  if (!text.is_valid()) throw nb::python_error();
  const nb::object arguments =
      number == 0 ? nb::object(nb::make_tuple(text)) : nb::object(nb::make_tuple(number, text));
  PyErr_SetObject(PyExc_OSError, arguments.ptr());
  throw nb::python_error();
}

/// Replaces the file atomically. If writing fails, the old file is unchanged.
void write_file(const nb::bytes& path, const nb::bytes& content) {
  const std::string name = to_path(path);
  const std::string_view bytes(content.c_str(), content.size());
  std::string failure;
  int number = 0;
  {
    const nb::gil_scoped_release release;
    try {
      OutputFile file(name);
      file.write(bytes);
      file.commit();
      return;
    } catch (const std::system_error& error) {
      failure = error.what();
      number = error.code().value();
    } catch (const std::runtime_error& error) {
      failure = error.what();
    }
  }
  raise_os_error(number, failure);
}

nb::bytes read_file(const nb::bytes& path) {
  const std::string name = to_path(path);
  std::string bytes;
  {
    const nb::gil_scoped_release release;
    bytes = ModelFile::read_bytes(name);
  }
  return to_bytes(bytes);
}

nb::bytes annotate(const nb::bytes& model, const nb::dict& annotations) {
  if (ClassModels::is_class_file(to_string(model))) {
    ClassModels classes = ClassModels::from_bytes(to_string(model), in_memory_name);
    classes.annotations = to_map(annotations);
    return to_bytes(classes.to_bytes());
  }
  ModelFile file = ModelFile::from_bytes(to_string(model), in_memory_name);
  file.annotations = to_map(annotations);
  return to_bytes(file.to_bytes());
}

nb::bytes pack_container(const nb::dict& annotations, const nb::list& parts) {
  ModelContainer container;
  container.annotations = to_map(annotations);
  for (const nb::handle part : parts) container.parts.push_back(to_string(nb::cast<nb::bytes>(part)));
  return to_bytes(container.to_bytes());
}

nb::tuple unpack_container(const nb::bytes& content, const nb::str& file) {
  const ModelContainer container = ModelContainer::from_bytes(to_string(content), to_utf8(file));
  nb::dict annotations;
  for (const auto& [name, text] : container.annotations) annotations[name.c_str()] = text;
  nb::list parts;
  for (const std::string& part : container.parts) parts.append(to_bytes(part));
  return nb::make_tuple(annotations, parts);
}

/// Returns the file of a model of more than two classes from the models of each class against the others.
nb::bytes pack_classes(const nb::list& labels, const nb::list& parts, double temperature, double precision) {
  ClassModels classes;
  for (const nb::handle label : labels) classes.labels.push_back(to_utf8(nb::cast<nb::str>(label)));
  classes.temperature = temperature;
  classes.precision = precision;
  for (const nb::handle part : parts) classes.parts.push_back(to_string(nb::cast<nb::bytes>(part)));
  return to_bytes(classes.to_bytes());
}

bool is_class_file(const nb::bytes& content) { return ClassModels::is_class_file(to_string(content)); }

/// Returns false for files of format version 1, which have no checksum.
bool has_checksum(const nb::bytes& content) {
  return has_valid_checksum(std::string_view(content.c_str(), content.size()));
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("write_file", &write_file, "path"_a, "content"_a);
  module.def("read_file", &read_file, "path"_a);
  module.def("annotate", &annotate, "model"_a, "annotations"_a);
  module.def("pack_container", &pack_container, "annotations"_a, "parts"_a);
  module.def("unpack_container", &unpack_container, "content"_a, "file"_a);
  module.def("pack_classes", &pack_classes, "labels"_a, "parts"_a, "temperature"_a, "precision"_a);
  module.def("is_class_file", &is_class_file, "content"_a);
  module.def("has_checksum", &has_checksum, "content"_a);
}

}  // namespace dyad::python
