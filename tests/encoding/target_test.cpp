#include "encoding/target.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

namespace dyad {
namespace {

const std::string targets_csv = "rows.csv";

Target fit_target(const std::vector<const char*>& texts, std::optional<Task> given = std::nullopt,
                  bool centered = true) {
  std::vector<Target::Sample> samples;
  for (std::size_t i = 0; i < texts.size(); ++i) samples.emplace_back(texts[i], static_cast<std::int64_t>(i) + 2);
  Target target;
  target.fit(samples, given, centered, {targets_csv, 0, 3});
  return target;
}

TEST(Target, InfersTheTask) {
  EXPECT_EQ(fit_target({"0", "1", "1"}).task, Task::classification);
  EXPECT_EQ(fit_target({"-1", "+1"}).task, Task::classification);
  EXPECT_EQ(fit_target({"1.0", "0.0"}).task, Task::classification);
  EXPECT_EQ(fit_target({"no", "yes"}).task, Task::classification);
  EXPECT_EQ(fit_target({"1", "2"}).task, Task::regression);
  EXPECT_EQ(fit_target({"0", "0"}).task, Task::classification);  // provisional until another number occurs
  EXPECT_EQ(fit_target({"5", "5"}).task, Task::regression);
  EXPECT_EQ(fit_target({"0", "1"}, std::nullopt, false).task, Task::regression);  // measurements are numbers
  EXPECT_EQ(fit_target({"0", "1", "0.5"}).task, Task::regression);
  EXPECT_EQ(fit_target({"1", "2"}, Task::classification).task, Task::classification);
  EXPECT_EQ(fit_target({"0", "1"}, Task::regression).task, Task::regression);
}

TEST(Target, OrdersTheClasses) {
  for (const auto& [negative, positive] : {std::pair{"0", "1"}, {"-1", "1"}, {"no", "yes"}, {"ham", "spam"}}) {
    for (const bool swapped : {false, true}) {
      Target target = fit_target({swapped ? positive : negative, swapped ? negative : positive});
      EXPECT_EQ(target.negative, negative);
      EXPECT_EQ(target.positive, positive);
      EXPECT_EQ(target.encode(negative, {targets_csv}), -1);
      EXPECT_EQ(target.encode(positive, {targets_csv}), 1);
    }
  }
  EXPECT_EQ(fit_target({"10", "9"}, Task::classification).positive, "10");
}

TEST(Target, AcceptsEquivalentSpellingsOfALabel) {
  Target target = fit_target({"0", "1"});
  for (const char* one : {"1", "1.0", "+1", "1e0"}) EXPECT_EQ(target.encode(one, {targets_csv}), 1) << one;
  EXPECT_EQ(target.encode(0.0, {targets_csv}), -1);
}

TEST(Target, AddsTheSecondClassWhenItOccurs) {
  Target sorted = fit_target({"1", "1"}, Task::classification);
  EXPECT_EQ(sorted.positive, "1");
  EXPECT_EQ(sorted.encode("0", {targets_csv}), -1);
  Target names = fit_target({"cat", "cat"});
  EXPECT_EQ(names.negative, "cat");
  EXPECT_EQ(names.encode("dog", {targets_csv}), 1);
  EXPECT_THROW((void)names.encode("cow", {targets_csv}), DataError);
}

TEST(Target, TaskIsProvisionalForASingleClassLabel) {
  for (const auto& [first, second] : {std::pair{"0", "1"}, {"1", "0"}, {"1", "-1"}, {"-1", "1"}}) {
    Target target = fit_target({first, first});
    EXPECT_TRUE(target.is_task_provisional());
    const double code = target.encode(first, {targets_csv});
    EXPECT_EQ(target.encode(second, {targets_csv}), -code);
    EXPECT_FALSE(target.is_task_provisional());
    EXPECT_EQ(target.task, Task::classification);
  }
  for (const auto& [first, second] : {std::pair{"0", "0.37"}, {"1", "2"}, {"-1", "0"}}) {
    Target target = fit_target({first});
    const double code = target.encode(first, {targets_csv});
    const double other = target.encode(second, {targets_csv});
    EXPECT_EQ(target.task, Task::regression);
    // Codes are scaled targets from the first row on.
    EXPECT_NEAR(target.unscale(code), std::stod(first), 1e-12);
    EXPECT_NEAR(target.unscale(other), std::stod(second), 1e-12);
  }
  EXPECT_FALSE(fit_target({"0"}, Task::classification).is_task_provisional());
  EXPECT_FALSE(fit_target({"cat"}).is_task_provisional());
  EXPECT_FALSE(fit_target({"7"}, Task::classification).is_task_provisional());
}

TEST(Target, ErrorsNameTheLocation) {
  try {
    (void)fit_target({"a", "b", "a", "c"});
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 5);
    EXPECT_EQ(error.column(), 3);
    EXPECT_NE(std::string(error.what()).find("third class 'c'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("standard input"), std::string::npos);
  }
  Target number = fit_target({"1", "2", "3"});
  for (const char* text : {"", "NA", "nan", "inf", "-inf", "spam", "1e999", "1e200"})
    EXPECT_THROW((void)number.encode(text, {targets_csv, 7, 1}), DataError) << text;
}

TEST(Target, MeasurementsAreNotCentered) {
  const Target target = fit_target({"4", "5", "6"}, Task::regression, false);
  EXPECT_EQ(target.scaling.apply(0), 0);
  EXPECT_NEAR(target.scaling.apply(5), 1, 0.3);
  const Target centered = fit_target({"4", "5", "6"}, Task::regression);
  EXPECT_EQ(centered.scaling.apply(5), 0);
  EXPECT_GT(std::abs(centered.scaling.apply(1e9)), 1e8);  // a target is never clipped
}

}  // namespace
}  // namespace dyad
