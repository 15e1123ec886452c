#include "encoding/group_file.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "encoding/sources/row_reader.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

class GroupFile : public test::TemporaryFolderTest {
 protected:
  /// Reads all rows of a libsvm file.
  static FeatureMap read(const std::string& path, const std::string& groups, Index index_base = 0) {
    FeatureMap map;
    DataOptions data;
    data.paths = {path};
    ColumnOptions columns;
    columns.groups_path = groups;
    columns.index_base = index_base;
    RowReader<double> reader(map, {.data = data, .columns = columns});
    for (RowBlock<double> block; reader.next(block) == RowReader<double>::Next::block;) continue;
    reader.stop();
    return map;
  }
};

TEST_F(GroupFile, NumbersGroupsInOrderOfOccurrence) {
  const PriorGroups groups = read_group_file(write("groups.txt", "user\r\nuser\n 7 \nuser\nfilm"));
  EXPECT_EQ(groups.names(), (std::vector<std::string>{"user", "7", "film"}));
  EXPECT_EQ(groups.group_of_features(), (std::vector<std::int32_t>{0, 0, 1, 0, 2}));
}

TEST_F(GroupFile, EmptyLineIsAnErrorWithItsNumber) {
  try {
    (void)read_group_file(write("groups.txt", "user\nfilm\n\nfilm\n"));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 3);
  }
  EXPECT_THROW((void)read_group_file(write("empty.txt", "")), DataError);
}

TEST_F(GroupFile, FeaturesHaveTheGroupOfTheirLine) {
  const std::string rows = write("rows.svm", "1 1:1 3:1\n2 2:1 4:2\n3 1:1\n");
  for (const Index base : {0, 1}) {
    const FeatureMap map = read(rows, write("groups.txt", base == 0 ? "a\na\nb\na\nb\n" : "a\nb\na\nb\n"), base);
    const PriorGroups groups = map.prior_groups();
    ASSERT_EQ(groups.feature_count(), 5 - base);
    for (Index index = 1; index <= 4; ++index)
      EXPECT_EQ(groups.name(groups.group_of(index - base)), index % 2 == 1 ? "a" : "b") << base;
    EXPECT_EQ(map.group_of_index(FeatureMap::Side::left, 3), groups.group_of(3 - base));
  }
}

TEST_F(GroupFile, IndexWithoutLineIsAnErrorInItsRow) {
  const std::string rows = write("rows.svm", "1 0:1\n2 1:1\n3 4:1\n");
  try {
    read(rows, write("groups.txt", "a\nb\nb\n"));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 3);
  }
}

}  // namespace
}  // namespace dyad
