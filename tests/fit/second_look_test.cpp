#include "fit/second_look.h"

#include <gtest/gtest.h>

#include <dyad/data_error.h>

#include "in_folder.h"

namespace dyad {
namespace {

class SecondLookOnFiles : public test::InFolder {};

TEST_F(SecondLookOnFiles, AnErrorInTheValidationFileLeavesTheGivenRange) {
  TrainOptions options;
  options.validation_path = write("validation.csv", "x,y\n1,2\n1,none\n");
  const TrainSettings settings;
  FeatureMap map;
  map.target.name = "y";
  map.target.low = 0;
  map.target.high = 1;
  map.target.range_is_given = true;
  Column column;
  column.name = "x";
  map.fix({column});
  const SecondLook<double> second_look(options, settings);
  EXPECT_THROW(second_look.check_validation(map, {}), DataError);
  EXPECT_TRUE(map.target.range_is_given);
}

}  // namespace
}  // namespace dyad
