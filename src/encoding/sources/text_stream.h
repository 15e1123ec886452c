#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "encoding/sources/row_stream.h"
#include "encoding/table_encoder.h"
#include "io/csv.h"
#include "io/line_reader.h"

namespace dyad {

/// Whole lines of one file with the rows that parse() made of them.
struct TextChunk {
  /// Base class of what the chunks of a file have in common.
  struct File {
    explicit File(std::string file_path) : path(std::move(file_path)) {}
    virtual ~File() = default;
    std::string path;
  };

  std::shared_ptr<const File> file;
  std::vector<char> buffer;    ///< the bytes that `lines` refers to
  LineBlock lines;             ///< lines that parse() has not read
  LineBlock parsed_lines;      ///< the lines before the last parse()
  EncodedRows encoded;         ///< rows of the last parse(); libsvm: neither scaled nor encoded
  CsvBlock cells;              ///< csv: rows that are encoded next, and texts that `encoded` refers to
  Index next_row = 0;          ///< first row of `encoded` that is not in a block
  Index unparsed_rows = 0;     ///< rows before `next_row` when unparse() was called
  std::exception_ptr failure;  ///< exception of read() or parse() after the rows of `encoded`

  /// True if all rows of the lines are in blocks.
  [[nodiscard]] bool is_exhausted() const { return lines.text.empty() && next_row == encoded.rows.count(); }

  void clear();
  /// Undoes the last parse(), except that rows in blocks are not appended again after the next one.
  void unparse();
};

/// Rows of text files. Reading, parsing and appending are separate steps, so that several threads can parse chunks:
/// one thread at a time calls read(), any threads call parse() for different chunks, and one thread at a time appends
/// the rows of the chunks to blocks, in the order of read(). fill() does all steps in one thread.
class TextStream : public RowStream {
 public:
  void fill(RowBlock<double>& block, const BlockLimits& limits) final;
  [[nodiscard]] TextStream* text() final { return this; }

  /// True if parse() may be called before the rows of preceding chunks are appended. Once true, it stays true, and
  /// fill() must not be called any more. Must not be called at the same time as append().
  [[nodiscard]] virtual bool can_parse_ahead() = 0;

  /// Replaces the chunk by the next lines. Returns false at the end of the files. An exception is stored in the chunk,
  /// after which no chunk follows; ReadingStopped is thrown.
  bool read(TextChunk& chunk);

  /// Parses lines until the chunk has rows up to the limits. An exception is stored in the chunk and ends its lines.
  void parse(TextChunk& chunk, const BlockLimits& limits) const;

  /// Starts a block. Returns its limits, at most `limits`.
  virtual BlockLimits begin(RowBlock<double>& block, const BlockLimits& limits);
  /// Appends rows of the chunk up to the limits. Returns false if the block must end before the chunk, because that
  /// belongs to another file.
  bool append(TextChunk& chunk, const BlockLimits& limits, RowBlock<double>& block);
  /// Completes a block that is not empty.
  virtual void finish(RowBlock<double>& block) = 0;

  /// True if read() may wait for a writer, as for a pipe.
  [[nodiscard]] bool may_wait() const { return may_wait_; }
  /// Moves the chunks that fill() has read and not exhausted.
  std::deque<TextChunk> take_chunks() { return std::move(chunks_); }

 protected:
  /// `paths`: the files of the stream.
  explicit TextStream(const std::vector<std::string>& paths);

  /// Replaces file, buffer and lines of the chunk. Returns false at the end of the files.
  virtual bool read_lines(TextChunk& chunk) = 0;
  virtual void parse_lines(TextChunk& chunk, const BlockLimits& limits) const = 0;
  virtual void append_rows(TextChunk& chunk, const BlockLimits& limits, RowBlock<double>& block) = 0;
  /// Determines the map from the first rows, which read_ahead() gives. Called by fill() before the first block.
  virtual void fit([[maybe_unused]] const BlockLimits& limits) {}
  /// Chunk `number` of those that fill() has not exhausted; nullptr at the end of the files.
  TextChunk* read_ahead(std::size_t number);

 private:
  bool may_wait_;
  bool has_failed_ = false;  ///< of read()
  /// File of the rows of the current block; nullptr: no rows. Shared, so that no other file gets the same address.
  std::shared_ptr<const TextChunk::File> block_file_;
  std::deque<TextChunk> chunks_;  ///< chunks of fill()
};

}  // namespace dyad
