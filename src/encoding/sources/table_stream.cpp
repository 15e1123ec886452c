#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "encoding/sources/table_rows.h"
#include "encoding/sources/text_stream.h"
#include "encoding/table.h"

namespace dyad {
namespace {

/// Rows of csv and tsv files.
class TableStream : public TextStream {
 public:
  TableStream(FeatureMap& map, const RowStreamOptions& options, char separator)
      : TextStream(options.data.paths),
        map_(map),
        options_(options),
        separator_(separator),
        files_(options.data, options.stop, options.block_bytes),
        checks_ignored_(map.is_fitted()) {}

  bool can_parse_ahead() override {
    if (is_settled_) return true;
    if (!map_.is_fitted() || (options_.targets == Targets::needed && !map_.target.is_settled())) return false;
    target_ = map_.target;
    is_settled_ = true;
    return true;
  }

  void finish(RowBlock<double>& block) override { RowEncoder::finish(map_, block); }

 protected:
  bool read_lines(TextChunk& chunk) override {
    while (true) {
      chunk.file = file_;
      if (reader_ && reader_->next_lines(chunk.lines, chunk.buffer)) return true;
      if (files_.at_end()) return false;
      chunk.file.reset();
      file_.reset();
      const Input input = files_.next();
      reader_.emplace(input, separator_);
      if (std::exchange(checks_ignored_, false))
        require_columns(reader_->names(), options_.columns.ignored, "ColumnOptions::ignored", input.path);
      file_ = std::make_shared<TableFile>(input.path, reader_->names());
      if (map_.is_fitted()) (void)file_->columns(map_, options_.targets);
    }
  }

  void parse_lines(TextChunk& chunk, const BlockLimits& limits) const override {
    const auto& file = static_cast<const TableFile&>(*chunk.file);
    const TableColumns& columns = file.columns(map_, options_.targets);
    TableEncoder encoder(map_, columns, options_.unknown, target_ ? &*target_ : nullptr);
    // Rows are prefetched and encoded in groups, so that cache misses of a group overlap. With limits, rows beyond them
    // must not be read. Sensitivity: docs/constants.md.
    constexpr std::size_t max_group_rows = 32;
    const bool is_limited = limits.max_rows < std::numeric_limits<Index>::max();
    CsvBlock& cells = chunk.cells;
    cells.columns = file.names.size();
    const auto is_full = [&] {
      return chunk.encoded.rows.count() >= limits.max_rows ||
             std::ssize(chunk.encoded.rows.values) + std::ssize(chunk.encoded.new_categories) >= limits.max_entries;
    };
    while (!chunk.lines.text.empty() && !is_full()) {
      cells.clear();
      parse_csv(chunk.lines, file.path, separator_, is_limited ? 1 : max_group_rows, cells);
      for (std::size_t row = 0; row < cells.rows(); ++row) encoder.prefetch(&cells.cells[row * cells.columns]);
      for (std::size_t row = 0; row < cells.rows(); ++row)
        encoder.encode(&cells.cells[row * cells.columns], cells.lines[row], chunk.encoded);
    }
  }

  void append_rows(TextChunk& chunk, const BlockLimits& limits, RowBlock<double>& block) override {
    if (!merger_) merger_.emplace(map_);
    const TableColumns& columns = static_cast<const TableFile&>(*chunk.file).columns(map_, options_.targets);
    chunk.next_row = merger_->append(chunk.encoded, chunk.next_row, columns, limits, block);
  }

  /// Determines the columns from the first rows of the first file that has rows.
  void fit(const BlockLimits& limits) override {
    if (map_.is_fitted()) return;
    TableSample sample;
    const TableFile* file = nullptr;
    CsvBlock cells;
    Index cell_count = 0;
    for (std::size_t number = 0;; ++number) {
      const TextChunk* chunk = read_ahead(number);
      if (chunk == nullptr || (file != nullptr && chunk->file.get() != file)) break;
      if (chunk->failure) {
        if (file != nullptr && chunk->file == nullptr) break;
        std::rethrow_exception(chunk->failure);
      }
      const auto& chunk_file = static_cast<const TableFile&>(*chunk->file);
      cells.columns = chunk_file.names.size();
      for (LineBlock lines = chunk->lines;
           !lines.text.empty() && cell_count < limits.max_entries && std::ssize(sample.rows) < limits.max_rows;) {
        cells.clear();
        parse_csv(lines, chunk_file.path, separator_, 1, cells);
        if (cells.rows() == 0) break;
        file = &chunk_file;
        sample.rows.emplace_back(cells.cells.begin(), cells.cells.end());
        sample.lines.push_back(cells.lines.front());
        cell_count += static_cast<Index>(cells.columns);
      }
      if (cell_count >= limits.max_entries || std::ssize(sample.rows) >= limits.max_rows) break;
    }
    if (file == nullptr) {
      (void)take_chunks();  // they have no rows
      return;
    }
    set_min_feature_count(map_, std::ssize(sample.rows), options_.min_feature_count);
    fit_table(map_, options_.columns, file->names, sample, file->path, [this](TargetScan& scan) { scan_files(scan); });
  }

 private:
  struct TableFile : TextChunk::File {
    TableFile(const std::string& file_path, std::vector<std::string> header)
        : File(file_path), names(std::move(header)) {}

    /// The columns of a fitted map. May be called from several threads.
    const TableColumns& columns(const FeatureMap& map, Targets targets) const {
      std::call_once(once_, [&] { columns_.emplace(map, names, path, targets); });
      return *columns_;
    }

    const std::vector<std::string> names;

   private:
    mutable std::once_flag once_;
    mutable std::optional<TableColumns> columns_;
  };

  /// Adds the targets of all regular files. Skips files without the target column, which fill() rejects later.
  void scan_files(TargetScan& scan) const {
    const DataOptions files = regular_files(options_.data);
    std::ptrdiff_t cell = 0;
    std::optional<TableRows> rows;
    rows.emplace(files, separator_, options_.stop, [&] {
      cell = std::find(rows->names().begin(), rows->names().end(), options_.columns.target) - rows->names().begin();
    });
    scan_targets(
        [&] {
          if (!rows->has_row(true)) return false;
          if (cell < std::ssize(rows->names()))
            scan.add(Target::Sample(rows->cells()[cell], rows->line(), &rows->path()));
          rows->advance();
          return true;
        },
        options_.stop);
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  char separator_;
  FileSequence files_;
  std::optional<CsvReader> reader_;
  std::shared_ptr<const TableFile> file_;  ///< of `reader_`
  bool checks_ignored_;                    ///< the next file is the first one, and the map was fitted before
  bool is_settled_ = false;                ///< can_parse_ahead()
  std::optional<Target> target_;           ///< copy of the target of the map, once it is settled
  std::optional<TableMerger> merger_;
};

}  // namespace

std::unique_ptr<RowStream> open_table(FeatureMap& map, const RowStreamOptions& options, char separator) {
  return std::make_unique<TableStream>(map, options, separator);
}

}  // namespace dyad
