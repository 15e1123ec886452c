#include <map>
#include <stdexcept>
#include <string>
#include <system_error>

#include <nanobind/stl/string.h>

#include "base/output_file.h"
#include "serialization/checksum.h"
#include "serialization/model_container.h"
#include "serialization/model_file.h"
#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

// Arguments are objects of Python, which the functions below convert: conversions by nanobind are noexcept, so that
// memory that is not there would end the process.

constexpr const char* in_memory = "the model";

std::string text_in(const nb::str& text) {
  Py_ssize_t size = 0;
  const char* characters = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (characters == nullptr) throw nb::python_error();
  return {characters, static_cast<std::size_t>(size)};
}

std::map<std::string, std::string> texts_of(const nb::dict& texts) {
  std::map<std::string, std::string> result;
  for (const auto& [name, text] : texts) result[text_in(nb::cast<nb::str>(name))] = text_in(nb::cast<nb::str>(text));
  return result;
}

/// The name of a file as the system spells it.
std::string path_of(const nb::bytes& path) {
  std::string text = text_of(path);
  if (text.find('\0') != std::string::npos) throw std::invalid_argument("path must not hold a null character");
  return text;
}

[[noreturn]] void raise_os_error(int number, const std::string& what) {
  nb::object text = nb::steal(PyUnicode_DecodeFSDefaultAndSize(what.data(), static_cast<Py_ssize_t>(what.size())));
  if (!text.is_valid()) throw nb::python_error();
  const nb::object arguments =
      number == 0 ? nb::object(nb::make_tuple(text)) : nb::object(nb::make_tuple(number, text));
  PyErr_SetObject(PyExc_OSError, arguments.ptr());
  throw nb::python_error();
}

/// Replaces the file as a whole, or leaves it as it was.
void write_file(const nb::bytes& path, const nb::bytes& content) {
  const std::string name = path_of(path);
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
  const std::string name = path_of(path);
  std::string bytes;
  {
    const nb::gil_scoped_release release;
    bytes = ModelFile::read_bytes(name);
  }
  return bytes_of(bytes);
}

nb::bytes annotate(const nb::bytes& model, const nb::dict& annotations) {
  ModelFile file = ModelFile::from_bytes(text_of(model), in_memory);
  file.annotations = texts_of(annotations);
  return bytes_of(file.to_bytes());
}

nb::bytes pack(const nb::dict& annotations, const nb::list& parts) {
  ModelContainer container;
  container.annotations = texts_of(annotations);
  for (const nb::handle part : parts) container.parts.push_back(text_of(nb::cast<nb::bytes>(part)));
  return bytes_of(container.to_bytes());
}

nb::tuple unpack(const nb::bytes& content, const nb::str& file) {
  const ModelContainer container = ModelContainer::from_bytes(text_of(content), text_in(file));
  nb::dict annotations;
  for (const auto& [name, text] : container.annotations) annotations[name.c_str()] = text;
  nb::list parts;
  for (const std::string& part : container.parts) parts.append(bytes_of(part));
  return nb::make_tuple(annotations, parts);
}

/// False for files of format version 1, which cannot be verified.
bool has_checksum(const nb::bytes& content) {
  return has_valid_checksum(std::string_view(content.c_str(), content.size()));
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def("write_file", &write_file, "path"_a, "content"_a);
  module.def("read_file", &read_file, "path"_a);
  module.def("annotate", &annotate, "model"_a, "annotations"_a);
  module.def("pack", &pack, "annotations"_a, "parts"_a);
  module.def("unpack", &unpack, "content"_a, "file"_a);
  module.def("has_checksum", &has_checksum, "content"_a);
}

}  // namespace dyad::python
