// The real data that benchmarks look at, in the folder that DYAD_DATA names.
#pragma once

#include <string>
#include <vector>

#include "encoding/sources/row_reader.h"

namespace dyad {

struct Case {
  const char* name;
  const char* train;
  const char* test;  ///< empty: progressive loss over the training rows
  ColumnOptions columns;
  bool in_deviations;  ///< rmse as a share of the training targets' standard deviation
};

inline ColumnOptions ratings() {
  ColumnOptions columns;
  columns.target = "rating";
  columns.categorical = {"user", "movie"};
  columns.ignored = {"timestamp"};
  return columns;
}

inline ColumnOptions table() {
  ColumnOptions columns;
  columns.target = "y";
  return columns;
}

inline std::vector<RowBlock<double>> read(FeatureMap& map, const std::string& path, const ColumnOptions& columns,
                                          bool training) {
  DataOptions data;
  data.paths = {path};
  RowReader<double> reader(map,
                           {.data = data,
                            .columns = columns,
                            .unknown = training ? TableEncoder::Unknown::grows : TableEncoder::Unknown::is_left_out,
                            .room = 8});
  std::vector<RowBlock<double>> blocks;
  for (RowBlock<double> block; reader.next(block) == RowReader<double>::Next::block;) blocks.push_back(block);
  return blocks;
}

inline std::vector<Case> real_cases() {
  return {{"MovieTweetings, test", "/ratings/movietweetings.train.csv", "/ratings/movietweetings.test.csv", ratings(),
           false},
          {"MovieTweetings, stream", "/ratings/movietweetings.stream.csv", "", ratings(), false},
          {"a9a, test log-loss", "/binary/a9a.train.svm", "/binary/a9a.test.svm", {}, false},
          {"bike, test", "/tabular/bike.train.csv", "/tabular/bike.test.csv", table(), true},
          {"kin40k, test", "/tabular/kin40k.train.csv", "/tabular/kin40k.test.csv", table(), true},
          {"concrete, test", "/tabular/concrete.train.csv", "/tabular/concrete.test.csv", table(), true}};
}

}  // namespace dyad
