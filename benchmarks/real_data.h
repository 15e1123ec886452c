// Real data sets of the benchmarks, in the folder DYAD_DATA.
#pragma once

#include <string>
#include <vector>

#include "encoding/sources/row_reader.h"

namespace dyad {

/// Training and test file of a data set.
struct RealDataSet {
  const char* name;
  const char* train;  ///< path below DYAD_DATA
  const char* test;   ///< path below DYAD_DATA; empty: progressive loss over the training rows
  ColumnOptions columns;
  bool has_standardized_loss;  ///< the rmse is divided by the standard deviation of the training targets
};

inline ColumnOptions rating_columns() {
  ColumnOptions columns;
  columns.target = "rating";
  columns.categorical = {"user", "movie"};
  columns.ignored = {"timestamp"};
  return columns;
}

inline ColumnOptions tag_columns() {
  ColumnOptions columns;
  columns.target = "used";
  columns.categorical = {"user", "artist", "tag"};
  return columns;
}

inline ColumnOptions click_columns() {
  ColumnOptions columns;
  columns.target = "click";
  columns.categorical = {"C*"};
  return columns;
}

inline ColumnOptions table_columns() {
  ColumnOptions columns;
  columns.target = "y";
  return columns;
}

/// Reads all rows. If `training`, adds new features to the map; otherwise ignores them.
inline std::vector<RowBlock<double>> read_blocks(FeatureMap& map, const std::string& path, const ColumnOptions& columns,
                                                 bool training) {
  DataOptions data;
  data.paths = {path};
  RowReader<double> reader(
      map, {.data = data,
            .columns = columns,
            .unknown = training ? TableEncoder::UnknownFeatures::add : TableEncoder::UnknownFeatures::ignore,
            .min_feature_count = 8});  // the rank
  std::vector<RowBlock<double>> blocks;
  for (RowBlock<double> block; reader.next(block) == RowReader<double>::Next::block;) blocks.push_back(block);
  return blocks;
}

inline std::vector<RealDataSet> real_data_sets() {
  return {{"MovieTweetings, test", "/ratings/movietweetings.train.csv", "/ratings/movietweetings.test.csv",
           rating_columns(), false},
          {"MovieTweetings, stream", "/ratings/movietweetings.stream.csv", "", rating_columns(), false},
          {"ml-small, test", "/ratings/ml-small.train.csv", "/ratings/ml-small.test.csv", rating_columns(), false},
          {"ml-small, stream", "/ratings/ml-small.stream.csv", "", rating_columns(), false},
          {"lastfm-tags, log-loss", "/contexts/lastfm-tags.train.csv", "/contexts/lastfm-tags.test.csv", tag_columns(),
           false},
          {"criteo-sample, log-loss", "/contexts/criteo-sample.train.csv", "/contexts/criteo-sample.test.csv",
           click_columns(), false},
          {"a9a, test log-loss", "/binary/a9a.train.svm", "/binary/a9a.test.svm", {}, false},
          {"bike, test", "/tabular/bike.train.csv", "/tabular/bike.test.csv", table_columns(), true},
          {"kin40k, test", "/tabular/kin40k.train.csv", "/tabular/kin40k.test.csv", table_columns(), true},
          {"concrete, test", "/tabular/concrete.train.csv", "/tabular/concrete.test.csv", table_columns(), true}};
}

}  // namespace dyad
