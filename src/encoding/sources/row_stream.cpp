#include "encoding/sources/row_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <dyad/data_error.h>
#include <dyad/memory.h>

#include "encoding/sources/streams.h"

namespace dyad {

void set_right_range(FeatureMap& map, const std::vector<std::string>& right) {
  const auto refuse = [] {
    throw std::invalid_argument(
        "a bilinear model of numbered columns needs the range of the second factor's: --right FIRST-LAST, or FIRST-");
  };
  if (right.size() != 1) refuse();
  const std::string& range = right.front();
  const char* end = range.data() + range.size();
  const auto first = std::from_chars(range.data(), end, map.right_first);
  if (first.ec != std::errc() || map.right_first < 1 || first.ptr == end || *first.ptr != '-') refuse();
  if (first.ptr + 1 == end) return;
  const auto last = std::from_chars(first.ptr + 1, end, map.right_last);
  if (last.ec != std::errc() || last.ptr != end || map.right_last < map.right_first) refuse();
}

void refuse_names(const ColumnOptions& options, const char* format) {
  const auto refuse = [&](bool given, const char* name) {
    if (given)
      throw std::invalid_argument(std::string(name) + " goes with csv and tsv, whose columns have names, not with " +
                                  format);
  };
  refuse(!options.target.empty(), "--target");
  refuse(!options.weight.empty(), "--weight");
  refuse(!options.categorical.empty(), "--categorical");
  refuse(!options.ignored.empty(), "--ignore");
}

void make_room(FeatureMap& map, Index first_rows, Index room) {
  constexpr Index few = 1024;
  if (first_rows < few) map.least_count = std::max<Index>(1, room);
}

DataOptions regular_files(const DataOptions& data) {
  DataOptions regular = data;
  regular.paths.clear();
  regular.target_paths.clear();
  const auto is_regular = [](const std::string& path) {
    std::error_code unknown;
    return path != "-" && std::filesystem::is_regular_file(path, unknown);
  };
  for (const std::string& path : data.paths)
    if (is_regular(path)) regular.paths.push_back(path);
  for (const std::string& path : data.target_paths)
    if (is_regular(path)) regular.target_paths.push_back(path);
  return regular;
}

bool can_be_read_again(const DataOptions& data) { return regular_files(data).paths.size() == data.paths.size(); }

void scan_targets(const std::function<bool()>& read_next, const std::function<bool()>& stop) {
  try {
    while (!(stop && stop()) && read_next()) continue;
  } catch (const DataError&) {
    return;
  }
}

void fix_target(Target& target, const RowBlock<double>& block, const ColumnOptions& options, bool centred,
                const std::string& file, const std::function<void(TargetScan&)>& scan) {
  std::vector<Target::Sample> samples;
  for (std::size_t i = 0; i < block.targets.size(); ++i) samples.emplace_back(block.targets[i], block.lines[i]);
  fix_by_scan(target, std::move(samples), options.task, centred, {file}, scan);
}

void encode_targets(Target& target, RowBlock<double>& block, const std::string& file) {
  for (std::size_t i = 0; i < block.targets.size(); ++i)
    block.targets[i] = target.encode(block.targets[i], {file, block.lines[i]});
}

void fix_numbers(FeatureMap& map, Index columns, const std::function<std::vector<double>(Index)>& column,
                 std::span<const double> weights, const std::string& file) {
  if (map.is_bilinear() && (map.right_first >= columns || (map.right_last >= 0 && map.right_last != columns - 1)))
    throw std::invalid_argument(file + " has the columns 0 to " + std::to_string(columns - 1) +
                                "; --right must name the last ones of them");
  std::vector<Column> described(static_cast<std::size_t>(columns));
  for (Index j = 0; j < columns; ++j) {
    Column& own = described[static_cast<std::size_t>(j)];
    own.name = std::to_string(j);
    own.right = map.is_bilinear() && j >= map.right_first;
    if (!map.is_measurement()) own.fit_numbers(column(j), weights);
    own.marks_missing = false;
  }
  map.fix(std::move(described));
}

void make_dense_where_worth_it(RowBlock<double>& block) {
  constexpr Index widest = 4096;
  constexpr Index sparsest = 4;  // one entry in so many
  if (block.dim > widest || sparsest * static_cast<Index>(block.values.size()) < block.count() * block.dim) return;
  std::vector<double> values(static_cast<std::size_t>(block.count() * block.dim));
  for (std::size_t i = 0; i + 1 < block.offsets.size(); ++i)
    for (auto e = static_cast<std::size_t>(block.offsets[i]); e < static_cast<std::size_t>(block.offsets[i + 1]); ++e)
      values[i * static_cast<std::size_t>(block.dim) + static_cast<std::size_t>(block.columns[e])] = block.values[e];
  block.values.swap(values);
  block.columns.clear();
  block.offsets.assign(1, 0);
  block.dense = true;
}

BlockLimits sparse_limits(const FeatureMap& map, BlockLimits limits) {
  if (map.is_fixed() && map.is_dense())
    limits.rows = std::clamp<Index>(limits.entries / std::max<Index>(1, map.dim()), 1, limits.rows);
  return limits;
}

void ReadLimits::validate() const {
  constexpr Index most_columns = std::numeric_limits<std::int32_t>::max();
  constexpr Index most_bytes = Index{1} << 50;
  if (max_columns < 1 || max_columns > most_columns)
    throw std::invalid_argument("max columns must lie in [1, 2^31), got " + std::to_string(max_columns));
  if (max_line_bytes < 1 || max_line_bytes > most_bytes)
    throw std::invalid_argument("max line bytes must lie in [1, 2^50], got " + std::to_string(max_line_bytes));
}

Format DataOptions::format_of_all() const {
  if (memory != nullptr) {
    if (!paths.empty()) throw std::invalid_argument("rows come from memory or from files, not from both");
    constexpr std::array families{Format::npy, Format::libsvm, Format::csv};
    return families[memory->features.index()];
  }
  if (paths.empty()) throw std::invalid_argument("a data file is needed, or - for standard input");
  if (std::count(paths.begin(), paths.end(), "-") > 1)
    throw std::invalid_argument("standard input can be read only once, but - is given twice");
  if (format) return *format;
  const std::pair<const char*, Format> endings[] = {{".svm", Format::libsvm},
                                                    {".libsvm", Format::libsvm},
                                                    {".csv", Format::csv},
                                                    {".tsv", Format::tsv},
                                                    {".npy", Format::npy}};
  std::optional<Format> common;
  for (const std::string& path : paths) {
    std::string_view name = path;
    for (const std::string_view packed : {".gz", ".zst"})
      if (name.ends_with(packed)) name.remove_suffix(packed.size());
    const auto found = std::find_if(std::begin(endings), std::end(endings),
                                    [&](const auto& ending) { return name.ends_with(ending.first); });
    if (found == std::end(endings))
      throw std::invalid_argument(path == "-" ? "standard input has no name to tell its format; give --format"
                                              : "the name '" + path +
                                                    "' does not tell its format (.svm, .libsvm, .csv, .tsv or .npy, "
                                                    "with .gz or .zst behind it); give --format");
    if (common && *common != found->second)
      throw std::invalid_argument("all files of one run must have one format; " + path + " has another");
    common = found->second;
  }
  return *common;
}

Layout layout_of(Format format) {
  return format == Format::npy ? Layout::matrix : format == Format::libsvm ? Layout::sparse : Layout::table;
}

std::vector<NamedFile> input_files(const DataOptions& data) {
  std::vector<NamedFile> files;
  for (const std::string& path : data.paths) files.push_back({path, "the data"});
  for (const std::string& path : data.target_paths) files.push_back({path, "the targets"});
  return files;
}

std::unique_ptr<RowStream> open_rows(FeatureMap& map, const RowStreamOptions& options) {
  const Format format = options.data.format_of_all();
  const Layout layout = layout_of(format);
  if (format != Format::npy && !options.data.target_paths.empty())
    throw std::invalid_argument("--target-file goes with npy, whose arrays have no place for targets");
  if (map.is_fixed()) {
    map.require_layout(layout, options.data.name());
  } else {
    map.layout = layout;
    map.hash_bits = options.columns.hash_bits;
  }
  if (options.data.memory != nullptr) return open_memory(map, options);
  if (format == Format::libsvm) return open_libsvm(map, options);
  if (format == Format::npy) return open_arrays(map, options);
  return open_table(map, options, format == Format::tsv ? '\t' : ',');
}

}  // namespace dyad
