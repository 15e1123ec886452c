#include "encoding/sources/row_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include <dyad/dataset.h>
#include <dyad/error.h>

#include "io/bytes_support.h"

namespace dyad {
namespace {

class RowReaderTest : public test::TemporaryFolderTest {
 protected:
  static std::string rows(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += std::to_string(i) + " 1:" + std::to_string(i % 7) + " 2:1\n";
    return text;
  }

  template <typename Scalar>
  static std::vector<Index> block_sizes(RowReader<Scalar>& reader) {
    std::vector<Index> sizes;
    RowBlock<Scalar> block;
    while (reader.next(block) == RowReader<Scalar>::Next::block) sizes.push_back(block.count());
    return sizes;
  }
};

TEST_F(RowReaderTest, BlocksDoNotDependOnTiming) {
  const std::string text = rows(10000);
  const std::string file = write("rows.svm", text);
  const std::string pipe = folder() + "/pipe.svm";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    const int descriptor = open(pipe.c_str(), O_WRONLY);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(1 + at % 3001, text.size() - at);
      ASSERT_EQ(::write(descriptor, text.data() + at, size), static_cast<ssize_t>(size));
      at += size;
    }
    close(descriptor);
  });
  FeatureMap map;
  RowReader<double> from_pipe(map, {.data = {.paths = {pipe}}});
  FeatureMap other_map;
  RowReader<double> from_file(other_map, {.data = {.paths = {file}}});
  RowBlock<double> a;
  RowBlock<double> b;
  Index total = 0;
  while (from_pipe.next(a) == RowReader<double>::Next::block) {
    ASSERT_EQ(from_file.next(b), RowReader<double>::Next::block);
    EXPECT_EQ(a.values, b.values);
    EXPECT_EQ(a.targets, b.targets);
    total += a.count();
  }
  EXPECT_EQ(from_file.next(b), RowReader<double>::Next::end);
  EXPECT_EQ(total, 10000);
  writer.join();
}

/// A reader with a thread waits for the caller after the first block, so that its thread can be counted.
TEST_F(RowReaderTest, StartsAThreadOnlyToReadAhead) {
  if (!std::filesystem::exists("/proc/self/task")) GTEST_SKIP();
  const auto threads = [] {
    using Tasks = std::filesystem::directory_iterator;
    return std::distance(Tasks("/proc/self/task"), Tasks());
  };
  const std::vector<double> numbers(20000, 1);
  DatasetView memory;
  memory.count = 20000;
  memory.features = MatrixView{1, numbers.data(), 1, 1};
  memory.targets = numbers;
  const auto before = threads();
  for (const bool reads_ahead : {true, false}) {
    FeatureMap map;
    map.layout = Layout::matrix;
    RowReader<double> reader(map, {.data = {.dataset = &memory}, .reads_ahead = reads_ahead, .threads = 2});
    EXPECT_EQ(threads(), before + (reads_ahead ? 1 : 0));
    RowBlock<double> block;
    Index count = 0;
    while (reader.next(block) == RowReader<double>::Next::block) count += block.count();
    EXPECT_EQ(count, memory.count);
  }
}

TEST_F(RowReaderTest, EndsBlocksAtCheckpointIntervals) {
  const std::string file = write("rows.svm", rows(10000));
  FeatureMap map;
  RowReader<float> reader(map, {.data = {.paths = {file}}, .checkpoint_interval = 3000, .rows_before = 1000});
  std::vector<Index> ends;
  Index total = 1000;
  RowBlock<float> block;
  while (reader.next(block) == RowReader<float>::Next::block) {
    total += block.count();
    if (block.ends_checkpoint_interval) ends.push_back(total);
  }
  EXPECT_EQ(ends, (std::vector<Index>{3000, 6000, 9000}));
  EXPECT_EQ(total, 11000);
}

TEST_F(RowReaderTest, WaitsAfterACheckpointInterval) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i) + " " + std::to_string(i + 1) + ":1\n";
  const std::string file = write("rows.svm", text);
  FeatureMap map;
  RowReader<double> reader(map, {.data = {.paths = {file}}, .checkpoint_interval = 100});
  RowBlock<double> block;
  for (Index rows = 100; rows <= 300; rows += 100) {
    ASSERT_EQ(reader.next(block), RowReader<double>::Next::block);
    ASSERT_TRUE(block.ends_checkpoint_interval);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(map.dim(), rows + 1);
  }
}

TEST_F(RowReaderTest, DeliversRowsBeforeAnError) {
  const std::string file = write("rows.svm", rows(5000) + "spam\n");
  FeatureMap map;
  RowReader<double> reader(map, {.data = {.paths = {file}}});
  RowBlock<double> block;
  ASSERT_EQ(reader.next(block), RowReader<double>::Next::block);
  EXPECT_EQ(block.count(), 4096);
  EXPECT_THROW((void)reader.next(block), DataError);
}

TEST_F(RowReaderTest, InterruptionEndsAWaitForAPipe) {
  const std::string pipe = folder() + "/pipe.svm";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int writer = open(pipe.c_str(), O_RDWR);
  ASSERT_EQ(::write(writer, "1 1:1\n", 6), 6);
  FeatureMap map;
  std::atomic<bool> interrupted = false;
  RowReader<double> reader(map, {.data = {.paths = {pipe}}, .interrupted = [&] { return interrupted.load(); }});
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    interrupted = true;
  });
  RowBlock<double> block;
  EXPECT_EQ(reader.next(block), RowReader<double>::Next::interrupted);
  reader.stop();
  user.join();
  close(writer);
}

TEST_F(RowReaderTest, LimitsTheBlocksReadAhead) {
  const std::string file = write("rows.svm", rows(100000));
  FeatureMap map;
  RowReader<double> reader(map, {.data = {.paths = {file}}});
  RowBlock<double> block;
  ASSERT_EQ(reader.next(block), RowReader<double>::Next::block);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  reader.stop();
  Index ahead = 0;
  while (reader.next(block) == RowReader<double>::Next::block) ++ahead;
  EXPECT_LE(ahead, 4);  // three in the queue and one in the thread
}

}  // namespace
}  // namespace dyad
