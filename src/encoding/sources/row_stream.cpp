#include "encoding/sources/row_stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <dyad/dataset.h>
#include <dyad/error.h>

#include "encoding/group_file.h"
#include "encoding/sources/streams.h"

namespace dyad {

void set_right_range(FeatureMap& map, const std::vector<std::string>& right) {
  const auto fail = [] {
    throw std::invalid_argument(
        "a bilinear model x'Mz of columns without names needs the range of the columns of z: set "
        "ColumnOptions::right to FIRST-LAST or FIRST-");
  };
  if (right.size() != 1) fail();
  const std::string& range = right.front();
  const char* end = range.data() + range.size();
  const auto first = std::from_chars(range.data(), end, map.right_first);
  if (first.ec != std::errc() || map.right_first < 1 || first.ptr == end || *first.ptr != '-') fail();
  if (first.ptr + 1 == end) return;
  const auto last = std::from_chars(first.ptr + 1, end, map.right_last);
  if (last.ec != std::errc() || last.ptr != end || map.right_last < map.right_first) fail();
}

void require_no_column_names(const ColumnOptions& options, const char* format) {
  const auto require_unset = [&](bool is_set, const char* name) {
    if (is_set)
      throw std::invalid_argument(std::string("ColumnOptions::") + name +
                                  " requires csv or tsv files, whose columns have names, got " + format);
  };
  require_unset(!options.target.empty(), "target");
  require_unset(!options.weight.empty(), "weight");
  require_unset(!options.categorical.empty(), "categorical");
  require_unset(!options.ignored.empty(), "ignored");
}

void set_min_feature_count(FeatureMap& map, Index first_rows, Index min_feature_count) {
  // Smaller first blocks may lack features of later rows. Sensitivity: docs/constants.md.
  constexpr Index small_block_rows = 1024;
  if (first_rows < small_block_rows) map.min_feature_count = std::max<Index>(1, min_feature_count);
}

DataOptions regular_files(const DataOptions& data) {
  DataOptions regular = data;
  regular.paths.clear();
  regular.target_paths.clear();
  const auto is_regular = [](const std::string& path) {
    std::error_code ignored;
    return path != "-" && std::filesystem::is_regular_file(path, ignored);
  };
  for (const std::string& path : data.paths)
    if (is_regular(path)) regular.paths.push_back(path);
  for (const std::string& path : data.target_paths)
    if (is_regular(path)) regular.target_paths.push_back(path);
  return regular;
}

bool can_reread(const DataOptions& data) { return regular_files(data).paths.size() == data.paths.size(); }

void scan_targets(const std::function<bool()>& read_next, const std::function<bool()>& stop) {
  try {
    while (!(stop && stop()) && read_next()) continue;
  } catch (const DataError&) {
    return;
  }
}

void fit_target(Target& target, const RowBlock<double>& block, const ColumnOptions& options, bool centered,
                const std::string& file, const std::function<void(TargetScan&)>& scan) {
  std::vector<Target::Sample> samples;
  for (std::size_t i = 0; i < block.targets.size(); ++i) samples.emplace_back(block.targets[i], block.lines[i]);
  fit_target_by_scan(target, std::move(samples), options.task, centered, {file}, scan);
}

void encode_targets(Target& target, RowBlock<double>& block, const std::string& file) {
  for (std::size_t i = 0; i < block.targets.size(); ++i)
    block.targets[i] = target.encode(block.targets[i], {file, block.lines[i]});
}

void fit_numeric_columns(FeatureMap& map, Index columns, const std::function<std::vector<double>(Index)>& column,
                         std::span<const double> weights, const std::string& file) {
  if (map.is_bilinear() && (map.right_first >= columns || (map.right_last >= 0 && map.right_last != columns - 1)))
    throw std::invalid_argument(file + " has the columns 0 to " + std::to_string(columns - 1) +
                                "; ColumnOptions::right must be a range that ends with the last column");
  std::vector<Column> fitted_columns(static_cast<std::size_t>(columns));
  for (Index j = 0; j < columns; ++j) {
    Column& result = fitted_columns[static_cast<std::size_t>(j)];
    result.name = std::to_string(j);
    result.is_right = map.is_bilinear() && j >= map.right_first;
    if (!map.is_measurement()) result.fit_scaling(column(j), weights);
    result.has_missing_indicator = false;
  }
  map.set_columns(std::move(fitted_columns));
}

void densify_if_filled(RowBlock<double>& block) {
  constexpr Index max_dense_dim = 4096;     // wider blocks stay sparse; sensitivity: docs/constants.md
  constexpr Index max_cells_per_entry = 4;  // at least a quarter of the cells is stored; sensitivity: docs/constants.md
  if (block.dim > max_dense_dim ||
      max_cells_per_entry * static_cast<Index>(block.values.size()) < block.count() * block.dim)
    return;
  std::vector<double> values(static_cast<std::size_t>(block.count() * block.dim));
  for (std::size_t i = 0; i + 1 < block.offsets.size(); ++i)
    for (auto e = static_cast<std::size_t>(block.offsets[i]); e < static_cast<std::size_t>(block.offsets[i + 1]); ++e)
      values[i * static_cast<std::size_t>(block.dim) + static_cast<std::size_t>(block.columns[e])] = block.values[e];
  block.values.swap(values);
  block.columns.clear();
  block.offsets.assign(1, 0);
  block.is_dense = true;
}

BlockLimits limit_sparse_block(const FeatureMap& map, BlockLimits limits) {
  if (map.is_fitted() && map.is_dense())
    limits.max_rows = std::clamp<Index>(limits.max_entries / std::max<Index>(1, map.dim()), 1, limits.max_rows);
  return limits;
}

void ReadLimits::validate() const {
  constexpr Index column_limit = std::numeric_limits<std::int32_t>::max();  // columns have 32-bit indices
  constexpr Index byte_limit = Index{1} << 50;  // above any memory, and small enough that sums do not overflow
  if (max_columns < 1 || max_columns > column_limit)
    throw std::invalid_argument("max_columns must lie in [1, 2^31), got " + std::to_string(max_columns));
  if (max_line_bytes < 1 || max_line_bytes > byte_limit)
    throw std::invalid_argument("max_line_bytes must lie in [1, 2^50], got " + std::to_string(max_line_bytes));
}

Format DataOptions::resolve_format() const {
  if (dataset != nullptr) {
    if (!paths.empty())
      throw std::invalid_argument("DataOptions::dataset and DataOptions::paths are both set; set one of them");
    constexpr std::array formats{Format::npy, Format::libsvm, Format::csv};
    return formats[dataset->features.index()];
  }
  if (paths.empty()) throw std::invalid_argument("no data file is given; name a file, or - for standard input");
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
    for (const std::string_view suffix : {".gz", ".zst"})
      if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
    const auto found = std::find_if(std::begin(endings), std::end(endings),
                                    [&](const auto& ending) { return name.ends_with(ending.first); });
    if (found == std::end(endings))
      throw std::invalid_argument(
          path == "-" ? "standard input has no file name that determines its format; set DataOptions::format"
                      : "the name '" + path +
                            "' does not determine the format (expected .svm, .libsvm, .csv, .tsv or .npy, "
                            "optionally followed by .gz or .zst); set DataOptions::format");
    if (common && *common != found->second)
      throw std::invalid_argument("all files of a run must have the same format; " + path + " has another one");
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
  const Format format = options.data.resolve_format();
  const Layout layout = layout_of(format);
  if (format != Format::npy && !options.data.target_paths.empty())
    throw std::invalid_argument(
        "DataOptions::target_paths requires npy files; files of other formats contain the targets");
  if (map.is_fitted()) {
    map.require_layout(layout, options.data.name());
  } else {
    map.layout = layout;
    map.hash_bits = options.columns.hash_bits;
    if (!options.columns.groups_path.empty()) {
      if (layout != Layout::sparse || map.is_bilinear() || map.hash_bits > 0)
        throw std::invalid_argument(
            "ColumnOptions::groups_path requires libsvm files or sparse rows, a kind other than bilinear, and no "
            "hashing; the columns of a table are its groups");
      map.index_groups = read_group_file(options.columns.groups_path, options.stop);
    }
  }
  if (options.data.dataset != nullptr) return open_memory(map, options);
  if (format == Format::libsvm) return open_libsvm(map, options);
  if (format == Format::npy) return open_arrays(map, options);
  return open_table(map, options, format == Format::tsv ? '\t' : ',');
}

}  // namespace dyad
