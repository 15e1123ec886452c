#include "io/row_text.h"

#include <charconv>

namespace dyad {
namespace {

template <typename Number>
void append_number(std::string& text, Number number) {
  char digits[32];  // the shortest form of a double has at most 24 characters
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  text.append(digits, end);
}

}  // namespace

std::vector<std::string> planted_feature_names(const PlantedOptions& problem) {
  std::vector<std::string> names;
  const auto add_group = [&](const char* prefix, Index count) {
    for (Index j = 1; j <= count; ++j) names.push_back(prefix + std::to_string(j));
  };
  add_group(problem.is_bilinear() ? "left." : "x", problem.dim);
  if (problem.is_bilinear()) add_group("right.", problem.right_dim);
  return names;
}

std::string make_npy_header(Index rows, Index columns) {
  const std::string shape =
      columns > 0 ? std::to_string(rows) + ", " + std::to_string(columns) : std::to_string(rows) + ",";
  std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t preamble_bytes = 10;        // magic number (6), version (2), length of the dictionary (2)
  constexpr std::size_t data_alignment_bytes = 64;  // as numpy.lib.format requires
  dictionary.append(data_alignment_bytes - (preamble_bytes + dictionary.size() + 1) % data_alignment_bytes, ' ');
  dictionary += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(dictionary.size() & 0xff);
  text += static_cast<char>(dictionary.size() >> 8);
  return text + dictionary;
}

std::string make_header(const PlantedOptions& problem, Format format, Index rows) {
  if (format == Format::libsvm) return "";
  if (format == Format::npy) return make_npy_header(rows, problem.total_dim());
  std::string names;
  for (const std::string& name : planted_feature_names(problem)) names += name + (format == Format::csv ? ',' : '\t');
  return names + planted_target_name + "\n";
}

void append_rows(Format format, const DenseBlock<double>& block, Index first, Index count, std::string& text) {
  if (format == Format::npy) {
    text.append(reinterpret_cast<const char*>(block.values.data() + first * block.dim),
                static_cast<std::size_t>(count * block.dim) * sizeof(double));
    return;
  }
  const char separator = format == Format::csv ? ',' : '\t';
  for (Index i = first; i < first + count; ++i) {
    const double* x = block.values.data() + i * block.dim;
    const double y = block.targets[static_cast<std::size_t>(i)];
    if (format == Format::libsvm) {
      append_number(text, y);
      for (Index j = 0; j < block.dim; ++j) {
        if (x[j] == 0) continue;
        text += ' ';
        append_number(text, j + 1);
        text += ':';
        append_number(text, x[j]);
      }
    } else {
      for (Index j = 0; j < block.dim; ++j) {
        append_number(text, x[j]);
        text += separator;
      }
      append_number(text, y);
    }
    text += '\n';
  }
}

}  // namespace dyad
