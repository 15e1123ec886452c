#include <algorithm>
#include <any>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "encoding/sources/row_reader.h"
#include "io/bytes_support.h"

namespace dyad {
namespace {

constexpr int thread_counts[] = {1, 2, 4};
constexpr std::size_t block_sizes_in_bytes[] = {1, 5, 61, 1009, Input::default_block_bytes};

/// All that a run of a reader returns. Two runs are equal if their texts are.
struct ReadRows {
  std::string blocks;
  std::string features;
  std::string error;
  std::int64_t error_line = 0;
  Index rows = 0;

  bool operator==(const ReadRows&) const = default;
};

/// Results of RowReader for all numbers of threads and all divisions of the text into chunks.
class ParallelReadingTest : public test::TemporaryFolderTest {
 protected:
  using Options = RowReader<double>::Options;

  static ReadRows read(FeatureMap& map, const Options& options,
                       const std::function<void(FeatureMap&)>& on_exclusive = {}) {
    ReadRows result;
    RowReader<double> reader(map, options);
    RowBlock<double> block;
    const auto add = [&](const char* name, const auto& numbers) {
      result.blocks += name;
      for (const auto number : numbers) result.blocks += ' ' + std::to_string(number);
      result.blocks += '\n';
    };
    try {
      while (reader.next(block) == RowReader<double>::Next::block) {
        const bool is_exclusive = result.rows == 0 || block.ends_checkpoint_interval;
        result.blocks += block.file.substr(block.file.rfind('/') + 1) + ' ' + std::to_string(block.dim) + ' ' +
                         std::to_string(block.left_dim) + (block.is_dense ? " dense\n" : " sparse\n");
        if (!block.is_dense) add("offsets", block.offsets);
        add("columns", block.columns);
        add("values", block.values);
        add("targets", block.targets);
        add("weights", block.weights);
        add("lines", block.lines);
        add("groups", block.new_feature_groups);
        for (const UnknownCell& cell : block.unknown_cells)
          result.blocks += std::to_string(cell.row) + ':' + std::to_string(cell.group) + ' ';
        (void)block.view();  // validates the block
        result.rows += block.count();
        if (is_exclusive && on_exclusive) on_exclusive(map);
      }
    } catch (const DataError& error) {
      result.error = error.what();
      result.error_line = error.line();
    }
    reader.stop();
    for (Index j = 0; j < map.dim(); ++j) result.features += map.name(j) + (map.is_used(j) ? "\n" : " unused\n");
    result.features += map.target.negative + '|' + map.target.positive;
    return result;
  }

  /// Expects the same result for all numbers of threads and chunk sizes, and returns it.
  static ReadRows read_all_ways(Options options, const std::function<void(FeatureMap&)>& prepare = {},
                                const std::function<void(FeatureMap&)>& on_exclusive = {}) {
    ReadRows expected;
    bool is_first = true;
    for (const int threads : thread_counts)
      for (const std::size_t block_bytes : block_sizes_in_bytes) {
        options.threads = threads;
        options.block_bytes = block_bytes;
        FeatureMap map;
        if (prepare) prepare(map);
        const ReadRows result = read(map, options, on_exclusive);
        if (std::exchange(is_first, false)) expected = result;
        const std::string run =
            std::to_string(threads) + " threads, chunks of " + std::to_string(block_bytes) + " bytes";
        EXPECT_EQ(result.error, expected.error) << run;
        EXPECT_EQ(result.rows, expected.rows) << run;
        EXPECT_EQ(result.features, expected.features) << run;
        const auto differing =
            std::mismatch(result.blocks.begin(), result.blocks.end(), expected.blocks.begin(), expected.blocks.end());
        constexpr std::ptrdiff_t shown = 200;  // characters before and after the first difference
        const auto excerpt = [&](const std::string& text, std::string::const_iterator at) {
          return std::string(at - std::min(shown, at - text.begin()), at + std::min(shown, text.end() - at));
        };
        EXPECT_TRUE(result.blocks == expected.blocks) << run << ":\n"
                                                      << excerpt(result.blocks, differing.first) << "\ninstead of\n"
                                                      << excerpt(expected.blocks, differing.second);
        EXPECT_TRUE(result == expected) << run;
      }
    return expected;
  }

  /// Columns of a table with a target and possibly weights.
  static ColumnOptions columns(const std::string& weight = "", const std::vector<std::string>& categorical = {}) {
    ColumnOptions options;
    options.target = "y";
    options.weight = weight;
    options.categorical = categorical;
    return options;
  }

  /// A table with categories that recur and new ones up to the last row, missing and quoted cells, and weights.
  static std::string table(int rows, const std::string& line_end = "\n") {
    std::string text = "user,\"ci\"\"ty\",size,y,w" + line_end;
    for (int i = 0; i < rows; ++i) {
      const std::string user =
          i % 50 == 0 ? "a user with a long name " + std::to_string(i) : std::to_string(i * 7 % 97);
      const std::string city = i % 11 == 0   ? "\"Bad \"\"N\"\"" + line_end + "Ort " + std::to_string(i % 33) + "\""
                               : i % 13 == 0 ? ""
                                             : "c" + std::to_string(i % 5);
      text += user + ',' + city + ',' + (i % 7 == 0 ? "NA" : std::to_string(0.25 * (i % 40))) + ", " +
              std::to_string(i % 9) + ".5 ," + std::to_string(1 + i % 3) + line_end;
      if (i % 17 == 0) text += line_end;
    }
    return text;
  }

  [[nodiscard]] Options table_options(const std::string& text, const std::string& name = "t.csv") const {
    return {.data = {.paths = {write(name, text)}}, .columns = columns("w", {"user"})};
  }
};

TEST_F(ParallelReadingTest, ReadsTables) {
  const ReadRows unix_rows = read_all_ways(table_options(table(6000)));
  EXPECT_EQ(unix_rows.rows, 6000);
  EXPECT_NE(unix_rows.features.find("Bad \"N\"\nOrt 22"), std::string::npos);
  std::string text = "\xef\xbb\xbf" + table(300);
  while (text.ends_with('\n')) text.pop_back();
  EXPECT_EQ(read_all_ways(table_options(text)).rows, 300);
  EXPECT_EQ(read_all_ways(table_options(table(300, "\r\n"))).rows, 300);
}

TEST_F(ParallelReadingTest, ReadsCompressedTables) {
  const std::string text = table(5000);
  const ReadRows plain = read_all_ways(table_options(text, "t.csv"));
  for (const std::string& packed : {test::gzipped(text), test::zstd_packed(text)})
    EXPECT_EQ(read_all_ways(table_options(packed, "t.csv")), plain);
}

TEST_F(ParallelReadingTest, HashesCategories) {
  Options options = table_options(table(5000));
  options.columns.hash_bits = 6;
  EXPECT_EQ(read_all_ways(options).rows, 5000);
}

TEST_F(ParallelReadingTest, ReadsTwoSidesAndSeveralFiles) {
  const std::string other = "y,w,size,\"ci\"\"ty\",user\n5,1,2,new city,1\n6,2,,c1,another user\n";
  Options options = table_options(table(4500));
  options.data.paths.push_back(write("empty.csv", "y,w,size,\"ci\"\"ty\",user\n"));
  options.data.paths.push_back(write("other.csv", other));
  options.columns.right = {"ci\"ty", "size"};
  const ReadRows rows = read_all_ways(options, [](FeatureMap& map) { map.kind = Kind::bilinear; });
  EXPECT_EQ(rows.rows, 4502);
}

TEST_F(ParallelReadingTest, ReadsNumericTables) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 9000; ++i) text += std::to_string(std::sin(i)) + "," + std::to_string(i % 2) + ",1e-3\n";
  const ReadRows rows =
      read_all_ways({.data = {.paths = {write("n.csv", text)}}, .columns = columns(), .checkpoint_interval = 700});
  EXPECT_EQ(rows.rows, 9000);
}

/// Bounds that change at a checkpoint apply to all later rows, although some of them have been parsed before.
TEST_F(ParallelReadingTest, AppliesChangedClippingAfterACheckpoint) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 6000; ++i) text += std::to_string(i % 500) + "," + std::to_string(i % 20) + "," + "0.5\n";
  double bound = 2;
  const auto clip = [&](FeatureMap& map) {
    bound *= 0.9;
    map.set_clipping(0, -bound, bound);
  };
  Options options{.data = {.paths = {write("n.csv", text)}}, .columns = columns(), .checkpoint_interval = 900};
  const ReadRows rows = read_all_ways(
      options, [&](FeatureMap&) { bound = 2; }, clip);
  EXPECT_EQ(rows.rows, 6000);
  EXPECT_NE(rows, read_all_ways(options));
}

TEST_F(ParallelReadingTest, ReadsSparseRows) {
  std::string text = "# comment\n";
  for (int i = 0; i < 6000; ++i)
    text += std::to_string(i % 2) + " " + std::to_string(i % 300) + ":1 " + std::to_string(300 + i * i % 7919) +
            ":0.5 # x\r\n" + (i % 19 == 0 ? "\n" : "");
  const Options options{.data = {.paths = {write("s.svm", text)}}};
  EXPECT_EQ(read_all_ways(options).rows, 6000);
  Options hashed = options;
  hashed.columns.hash_bits = 8;
  EXPECT_EQ(read_all_ways(hashed).rows, 6000);
  Options two_sides = options;
  two_sides.columns.right = {"300-"};
  EXPECT_EQ(read_all_ways(two_sides, [](FeatureMap& map) { map.kind = Kind::bilinear; }).rows, 6000);
}

TEST_F(ParallelReadingTest, ReportsUnknownCategoriesAndIndices) {
  const auto train = [](const Options& training) { return [training](FeatureMap& map) { (void)read(map, training); }; };
  Options options = table_options(table(5000), "new.csv");
  options.unknown = TableEncoder::UnknownFeatures::ignore;
  const ReadRows rows = read_all_ways(options, train(table_options(table(300), "known.csv")));
  EXPECT_EQ(rows.rows, 5000);
  EXPECT_NE(rows.blocks.find(':'), std::string::npos);
  options.targets = TableEncoder::Targets::none;
  EXPECT_EQ(read_all_ways(options, train(table_options(table(300), "known.csv"))).rows, 5000);

  const Options known{.data = {.paths = {write("known.svm", "1 1:1\n2 2:1\n")}}};
  Options sparse{.data = {.paths = {write("new.svm", "1 1:1 3:1\n2 2:1\n3 4:1\n")}}};
  sparse.unknown = TableEncoder::UnknownFeatures::ignore;
  EXPECT_NE(read_all_ways(sparse, train(known)).blocks.find("0:"), std::string::npos);
}

/// The second class is in the last rows.
TEST_F(ParallelReadingTest, EncodesALateSecondTarget) {
  for (const std::string last : {"1", "0.25", "x"}) {
    std::string text = "user,y\n";
    for (int i = 0; i < 9000; ++i) text += "u" + std::to_string(i % 1000) + ",0\n";
    for (int i = 0; i < 5000; ++i) text += "v" + std::to_string(i % 100) + "," + (i % 2 == 0 ? last : "0") + "\n";
    Options options{.data = {.paths = {write("p.csv", text)}}, .columns = columns()};
    options.columns.task = Task::classification;
    const ReadRows rows = read_all_ways(options);
    EXPECT_EQ(rows.rows, 14000);
    EXPECT_NE(rows.features.find(last), std::string::npos);
  }
}

TEST_F(ParallelReadingTest, ErrorsNameTheLineInEveryChunk) {
  const std::string good = table(5000);
  std::vector<std::size_t> starts;  // of lines outside of quoted cells: those that begin a row
  for (std::size_t at = good.find('\n') + 1; at < good.size(); at = good.find('\n', at) + 1)
    if (std::string_view(good).substr(at, 3) == "14,") starts.push_back(at);
  ASSERT_GT(starts.size(), 10U);
  const std::pair<const char*, const char*> errors[] = {{"1,c1,0.5,2\n", "5 cells"},
                                                        {"1,c1,much,2,1\n", "much"},
                                                        {"1,c1,0.5,many,1\n", "many"},
                                                        {"1,c1,0.5,2,-1\n", "weight"},
                                                        {"1,\"c1\"x,0.5,2,1\n", "closing quote"}};
  for (const std::size_t start : {starts.front(), starts[starts.size() / 2], starts.back()}) {
    const auto line = 1 + std::count(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(start), '\n');
    for (const auto& [row, message] : errors) {
      std::string text = good;
      text.insert(start, row);
      const ReadRows rows = read_all_ways(table_options(text));
      EXPECT_EQ(rows.error_line, line) << row;
      EXPECT_NE(rows.error.find(message), std::string::npos) << rows.error;
      EXPECT_EQ(rows.rows % 4096, 0);
    }
  }
  std::string sparse;
  for (int i = 0; i < 5000; ++i) sparse += "1 " + std::to_string(i % 100) + ":1\n";
  const ReadRows rows = read_all_ways({.data = {.paths = {write("s.svm", sparse + "1 2:x\n" + sparse)}}});
  EXPECT_EQ(rows.error_line, 5001);
  EXPECT_EQ(rows.rows, 4096);
}

/// The error of the first invalid row is reported, not that of a later one that another thread has parsed.
TEST_F(ParallelReadingTest, ReportsTheFirstOfSeveralErrors) {
  std::string text = "a,y\n";
  for (int i = 2; i < 9000; ++i) text += i == 5000 ? "1\n" : i > 5000 && i % 50 == 0 ? "x,1\n" : "1,2\n";
  const ReadRows rows = read_all_ways({.data = {.paths = {write("t.csv", text)}}, .columns = columns()});
  EXPECT_EQ(rows.error_line, 5000);
}

TEST_F(ParallelReadingTest, RejectsTruncatedFiles) {
  const std::string text = table(20000);
  for (const std::string& packed : {test::gzipped(text), test::zstd_packed(text)}) {
    const std::string truncated = packed.substr(0, packed.size() - 20);
    const ReadRows rows = read_all_ways(table_options(truncated, "t.csv"));
    EXPECT_NE(rows.error.find("cut off"), std::string::npos) << rows.error;
  }
}

TEST_F(ParallelReadingTest, DeliversTheRowsBeforeAFileThatIsMissing) {
  Options options = table_options(table(5000));
  options.data.paths.push_back(path("missing.csv"));
  for (const int threads : thread_counts) {
    options.threads = threads;
    FeatureMap map;
    RowReader<double> reader(map, options);
    RowBlock<double> block;
    Index rows = 0;
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(reader.next(block), RowReader<double>::Next::block);
      rows += block.count();
    }
    EXPECT_EQ(rows, 5000);
    EXPECT_THROW((void)reader.next(block), std::runtime_error);
  }
}

TEST_F(ParallelReadingTest, ProcessesBlocksInOrder) {
  Options options = table_options(table(50000));
  for (const int threads : thread_counts) {
    options.threads = threads;
    options.process = [](const RowBlock<double>& block) {
      if (block.lines.front() > 45000) throw std::runtime_error("late block");
      return std::any(block.lines.front());
    };
    FeatureMap map;
    RowReader<double> reader(map, options);
    RowBlock<double> block;
    std::any result;
    std::int64_t last_line = 0;
    EXPECT_THROW(
        {
          while (reader.next(block, result) == RowReader<double>::Next::block) {
            EXPECT_EQ(std::any_cast<std::int64_t>(result), block.lines.front());
            EXPECT_GT(block.lines.front(), last_line);
            last_line = block.lines.back();
          }
        },
        std::runtime_error);
    EXPECT_GT(last_line, 40000);
  }
}

TEST_F(ParallelReadingTest, StopsAtAnyTime) {
  for (const int threads : thread_counts)
    for (int blocks = 0; blocks < 4; ++blocks) {
      Options options = table_options(table(30000));
      options.threads = threads;
      FeatureMap map;
      RowReader<double> reader(map, options);
      RowBlock<double> block;
      for (int i = 0; i < blocks; ++i) ASSERT_EQ(reader.next(block), RowReader<double>::Next::block);
      reader.stop();
      EXPECT_GE(map.dim(), 0);
    }
}

}  // namespace
}  // namespace dyad
