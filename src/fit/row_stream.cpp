#include "fit/row_stream.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include <dyad/data_error.h>

#include "source/csv.h"
#include "source/libsvm.h"
#include "source/npy.h"

namespace dyad {
namespace {

using Targets = TableEncoder::Targets;
using Unknown = TableEncoder::Unknown;

/// The files one after the other.
class Files {
 public:
  Files(const DataOptions& data, const std::atomic<bool>* stop) : data_(data), stop_(stop) {}

  [[nodiscard]] bool at_end() const { return next_ == data_.paths.size(); }
  Input next() { return {data_.paths[next_++], stop_}; }
  [[nodiscard]] Input target_of_last() const { return {data_.target_paths[next_ - 1], stop_}; }

 private:
  const DataOptions& data_;
  const std::atomic<bool>* stop_;
  std::size_t next_ = 0;
};

/// --right for columns that have numbers as names: FIRST-LAST or FIRST-.
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

void fix_target(Target& target, const RowBlock<double>& block, const ColumnOptions& options, bool centred,
                const std::string& file) {
  std::vector<std::string> texts;
  for (const double value : block.targets) texts.push_back(shortest(value));
  std::vector<Target::Sample> samples;
  for (std::size_t i = 0; i < texts.size(); ++i) samples.push_back({texts[i], block.lines[i]});
  target.fix(samples, options.task, centred, {file});
}

void encode_targets(Target& target, RowBlock<double>& block, const std::string& file) {
  for (std::size_t i = 0; i < block.targets.size(); ++i)
    block.targets[i] = target.encode(block.targets[i], {file, block.lines[i]});
}

class LibsvmStream : public RowStream {
 public:
  LibsvmStream(FeatureMap& map, const RowStreamOptions& options)
      : map_(map), options_(options), files_(options.data, options.stop) {
    if (map.is_fixed()) return;
    refuse_names(options.columns, "libsvm");
    if (map.is_bilinear()) set_right_range(map, options.columns.right);
    map.index_base = options.columns.index_base;
  }

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    while (!limits.reached_by(block)) {
      if (lines_.text.empty() && !(reader_ && reader_->next(lines_))) {
        if (files_.at_end() || block.count() > 0) break;  // a block belongs to one file: its lines have one name
        reader_.emplace(files_.next());
        continue;
      }
      parse_libsvm(lines_, reader_->path(), limits, block);
    }
    if (block.count() == 0) return;
    block.file = reader_->path();
    if (!map_.is_fixed()) {
      make_room(map_, block.count(), options_.room);
      map_.fix({});
      fix_target(map_.target, block, options_.columns, !map_.is_measurement(), reader_->path());
    }
    if (options_.targets == Targets::needed)
      encode_targets(map_.target, block, reader_->path());
    else
      block.targets.clear();
    encode_indices(block);
    if (is_worth_being_dense(block)) make_dense(block);
  }

 private:
  void encode_indices(RowBlock<double>& block) {
    if (!map_.is_bilinear() && map_.hash_bits == 0 && map_.index_base == 0) {
      // Indices are features already, unless one is unknown.
      const auto largest = std::max_element(block.columns.begin(), block.columns.end());
      if (largest == block.columns.end() ||
          map_.indexed(*largest, options_.unknown == Unknown::grows).second != FeatureMap::unknown)
        return TableEncoder::finish(map_, block);
    }
    columns_.clear();
    values_.clear();
    offsets_.assign(1, 0);
    for (std::size_t i = 0; i < block.lines.size(); ++i) {
      encode_row(block, i);
      if (map_.hash_bits > 0) std::sort(row_.begin(), row_.end());
      for (const auto& [feature, value] : row_) {
        const auto column = static_cast<std::int32_t>(feature < right_mark ? feature : ~(feature - right_mark));
        if (static_cast<Index>(columns_.size()) > offsets_.back() && columns_.back() == column) {
          values_.back() += value;
          continue;
        }
        columns_.push_back(column);
        values_.push_back(value);
      }
      offsets_.push_back(static_cast<Index>(values_.size()));
    }
    block.columns.swap(columns_);
    block.values.swap(values_);
    block.offsets.swap(offsets_);
    TableEncoder::finish(map_, block);
  }

  /// The features of one row, those of z marked, in the order of the indices.
  void encode_row(RowBlock<double>& block, std::size_t i) {
    row_.clear();
    for (auto e = static_cast<std::size_t>(block.offsets[i]); e < static_cast<std::size_t>(block.offsets[i + 1]); ++e) {
      const std::int64_t index = block.columns[e];
      if (index < map_.index_base || (map_.right_last >= 0 && index > map_.right_last))
        throw DataError(reader_->path(), block.lines[i], 0,
                        "expected an index " +
                            (index < map_.index_base ? "of at least " + std::to_string(map_.index_base)
                                                     : "up to " + std::to_string(map_.right_last)) +
                            ", got " + std::to_string(index));
      const auto [side, feature] = map_.indexed(index, options_.unknown == Unknown::grows);
      if (feature == FeatureMap::unknown)
        ++block.unknown_cells;
      else
        row_.emplace_back(side == FeatureMap::Side::left ? feature : feature + right_mark, block.values[e]);
    }
  }

  /// Sparse text often holds dense rows, and dense kernels are several times faster.
  static bool is_worth_being_dense(const RowBlock<double>& block) {
    constexpr Index widest = 4096;
    constexpr Index sparsest = 4;  // one entry in so many
    return block.dim <= widest && sparsest * static_cast<Index>(block.values.size()) >= block.count() * block.dim;
  }

  static void make_dense(RowBlock<double>& block) {
    std::vector<double> values(static_cast<std::size_t>(block.count() * block.dim));
    for (std::size_t i = 0; i + 1 < block.offsets.size(); ++i)
      for (auto e = static_cast<std::size_t>(block.offsets[i]); e < static_cast<std::size_t>(block.offsets[i + 1]); ++e)
        values[i * static_cast<std::size_t>(block.dim) + static_cast<std::size_t>(block.columns[e])] = block.values[e];
    block.values.swap(values);
    block.columns.clear();
    block.offsets.assign(1, 0);
    block.dense = true;
  }

  static constexpr std::int64_t right_mark = std::int64_t{1} << 32;

  FeatureMap& map_;
  RowStreamOptions options_;
  Files files_;
  std::optional<LineReader> reader_;
  LineBlock lines_;
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
  std::vector<Index> offsets_;
  std::vector<std::pair<std::int64_t, double>> row_;
};

class TableStream : public RowStream {
 public:
  TableStream(FeatureMap& map, const RowStreamOptions& options, char separator)
      : map_(map), options_(options), files_(options.data, options.stop), separator_(separator) {}

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    if (!map_.is_fixed()) {
      read_first_rows(limits);
      if (sample_.rows.empty()) return;
    }
    std::vector<std::string_view> cells;
    for (; next_sample_ < sample_.rows.size() && !limits.reached_by(block); ++next_sample_) {
      const auto& row = sample_.rows[next_sample_];
      cells.assign(row.begin(), row.end());
      encoder_->encode(cells.data(), sample_.lines[next_sample_], block);
    }
    if (next_sample_ == sample_.rows.size()) {
      sample_ = {};
      next_sample_ = 0;
      while (!limits.reached_by(block) && more_rows(block.count() == 0)) {
        constexpr std::size_t soon = 8;
        if (next_row_ + soon < text_.rows())
          encoder_->prefetch(text_.cells.data() + (next_row_ + soon) * text_.columns);
        encoder_->encode(text_.cells.data() + next_row_ * text_.columns, text_.lines[next_row_], block);
        ++next_row_;
      }
    }
    if (reader_) block.file = reader_->path();
    TableEncoder::finish(map_, block);
  }

 private:
  /// Whether a row is waiting, in the next file if need be.
  bool more_rows(bool may_open_next) {
    while (next_row_ == text_.rows()) {
      next_row_ = 0;
      text_.lines.clear();
      if (reader_ && reader_->next(text_)) continue;
      text_.lines.clear();
      if (files_.at_end() || !may_open_next) return false;
      reader_.emplace(files_.next(), separator_);
      if (map_.is_fixed()) open_encoder();
    }
    return true;
  }

  void open_encoder() { encoder_.emplace(map_, reader_->names(), reader_->path(), options_.targets, options_.unknown); }

  /// A block's worth of rows, kept as text until it is clear what the columns are.
  void read_first_rows(const BlockLimits& limits) {
    Index entries = 0;
    while (more_rows(sample_.rows.empty()) && static_cast<Index>(sample_.rows.size()) < limits.rows &&
           entries < limits.entries) {
      const auto row = text_.cells.begin() + static_cast<std::ptrdiff_t>(next_row_ * text_.columns);
      sample_.rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(text_.columns));
      sample_.lines.push_back(text_.lines[next_row_++]);
      entries += static_cast<Index>(text_.columns);
    }
    if (sample_.rows.empty()) return;
    make_room(map_, static_cast<Index>(sample_.rows.size()), options_.room);
    fix_table(map_, options_.columns, reader_->names(), sample_, reader_->path());
    open_encoder();
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  Files files_;
  char separator_;
  std::optional<CsvReader> reader_;
  std::optional<TableEncoder> encoder_;
  CsvBlock text_;
  std::size_t next_row_ = 0;
  TableSample sample_;
  std::size_t next_sample_ = 0;
};

class ArrayStream : public RowStream {
 public:
  ArrayStream(FeatureMap& map, const RowStreamOptions& options)
      : map_(map), options_(options), files_(options.data, options.stop) {
    const DataOptions& data = options.data;
    if (options.targets == Targets::needed && data.target_paths.size() != data.paths.size())
      throw std::invalid_argument("npy needs the targets in arrays of their own, one for each file: --target-file");
    if (map.is_fixed()) return;
    refuse_names(options.columns, "npy");
    if (map.is_bilinear()) set_right_range(map, options.columns.right);
  }

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    while (block.count() == 0) {
      if (!features_ || done_ == features_->rows()) {
        if (files_.at_end()) return;
        open_next();
        continue;
      }
      read(block, limits);
    }
    block.file = path_;
    if (!map_.is_fixed()) fix(block);
    encode_targets(map_.target, block, path_);
    const std::vector<Scaling> scalings = map_.scalings();
    for (std::size_t i = 0; i < block.values.size(); ++i)
      block.values[i] = scalings[i % scalings.size()].apply(block.values[i]);
    TableEncoder::finish(map_, block);
  }

 private:
  void open_next() {
    const Input input = files_.next();
    path_ = input.path;
    features_.emplace(input, largest_value);
    done_ = 0;
    if (map_.is_fixed() && features_->columns() != map_.dim())
      throw std::invalid_argument(path_ + " has " + std::to_string(features_->columns()) +
                                  " columns, but the model is for " + std::to_string(map_.dim()));
    if (options_.targets == Targets::none) return;
    const Input target = files_.target_of_last();
    targets_.emplace(target);
    if (targets_->columns() != 1 || targets_->rows() != features_->rows())
      throw DataError(target.path, 0, 0,
                      "expected one target for each of the " + std::to_string(features_->rows()) + " rows of " + path_ +
                          ", got an array of " + std::to_string(targets_->rows()) + " x " +
                          std::to_string(targets_->columns()));
  }

  void read(RowBlock<double>& block, const BlockLimits& limits) {
    const Index columns = features_->columns();
    const Index most = std::clamp<Index>(limits.entries / columns, 1, limits.rows);
    block.values.resize(static_cast<std::size_t>(most * columns));
    const Index got = features_->next(block.values);
    block.values.resize(static_cast<std::size_t>(got * columns));
    for (Index i = 0; i < got; ++i) block.lines.push_back(++done_);
    if (options_.targets == Targets::none) return;
    block.targets.resize(static_cast<std::size_t>(got));
    (void)targets_->next(block.targets);
  }

  void fix(const RowBlock<double>& block) {
    const auto columns = static_cast<std::size_t>(features_->columns());
    if (map_.is_bilinear() && (map_.right_first >= features_->columns() ||
                               (map_.right_last >= 0 && map_.right_last != features_->columns() - 1)))
      throw std::invalid_argument(path_ + " has the columns 0 to " + std::to_string(columns - 1) +
                                  "; --right must name the last ones of them");
    std::vector<Column> described(columns);
    for (std::size_t j = 0; j < columns; ++j) {
      described[j].name = std::to_string(j);
      described[j].right = map_.is_bilinear() && static_cast<Index>(j) >= map_.right_first;
      if (map_.is_measurement()) continue;
      std::vector<double> values;
      for (std::size_t i = j; i < block.values.size(); i += columns) values.push_back(block.values[i]);
      described[j].scaling = robust_scaling(std::move(values));
    }
    map_.fix(std::move(described));
    fix_target(map_.target, block, options_.columns, !map_.is_measurement(), path_);
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  Files files_;
  std::string path_;
  std::optional<NpyReader> features_;
  std::optional<NpyReader> targets_;
  Index done_ = 0;
};

}  // namespace

Format DataOptions::format_of_all() const {
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

std::unique_ptr<RowStream> open_rows(FeatureMap& map, const RowStreamOptions& options) {
  const Format format = options.data.format_of_all();
  const Format family = format == Format::tsv ? Format::csv : format;
  if (map.is_fixed() && map.format != family)
    throw std::invalid_argument("the model was trained on rows of another format than " + options.data.paths.front());
  map.format = family;
  if (format != Format::npy && !options.data.target_paths.empty())
    throw std::invalid_argument("--target-file goes with npy, whose arrays have no place for targets");
  if (!map.is_fixed()) map.hash_bits = options.columns.hash_bits;
  if (format == Format::libsvm) return std::make_unique<LibsvmStream>(map, options);
  if (format == Format::npy) return std::make_unique<ArrayStream>(map, options);
  return std::make_unique<TableStream>(map, options, format == Format::tsv ? '\t' : ',');
}

}  // namespace dyad
