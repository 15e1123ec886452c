#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

using nlohmann::json;

class TrainCommand : public CommandTest {};

TEST_F(TrainCommand, FitsTablesByAnova) {
  const std::string rows = write("rows.csv", houses(3000, 1));
  const std::string fresh = write("fresh.csv", houses(500, 2));
  const std::string model = path("m.dyad");
  const json trained = run_json("train " + rows + " -m " + model + " --target price --validation " + fresh);
  EXPECT_EQ(trained.at("solver"), "anova");
  EXPECT_GT(trained.at("validation").at("r2"), 0.9);
  EXPECT_TRUE(trained.at("progressive").at("rmse").is_null());
  const json evaluated = run_json("evaluate -m " + model + " " + fresh);
  EXPECT_EQ(evaluated.at("metrics").at("rmse"), trained.at("validation").at("rmse"));
  const json inspected = run_json("inspect " + model + " --top 1000 --export " + path("effects.csv"));
  double share = 0;
  std::size_t positions = 0;
  for (const json& effect : inspected.at("effects")) {
    share += effect.at("share").get<double>();
    positions += effect.at("values").size();
    EXPECT_EQ(effect.at("values").size(), effect.at("standard_errors").size());
  }
  EXPECT_NEAR(share, 1, 1e-9);
  const std::string exported = content(path("effects.csv"));
  EXPECT_EQ(std::count(exported.begin(), exported.end(), '\n'), static_cast<std::ptrdiff_t>(positions) + 2);
}

TEST_F(TrainCommand, ResumedAnovaEqualsOneFitOfAllRows) {
  const std::string rows = houses(1200, 1);
  const std::size_t header = rows.find('\n') + 1;
  std::size_t middle = rows.size() / 2;
  middle = rows.find('\n', middle) + 1;
  const std::string all = write("all.csv", rows);
  const std::string first = write("first.csv", rows.substr(0, middle));
  const std::string second = write("second.csv", rows.substr(0, header) + rows.substr(middle));
  (void)run_json("train " + first + " -m " + path("m.dyad") + " --target price");
  EXPECT_EQ(run_json("train " + second + " --resume -m " + path("m.dyad")).at("all_rows"), 1200);
  const double resumed = run_json("evaluate -m " + path("m.dyad") + " " + all).at("metrics").at("rmse");
  (void)run_json("train " + all + " -m " + path("m.dyad") + " --target price");
  const double fitted = run_json("evaluate -m " + path("m.dyad") + " " + all).at("metrics").at("rmse");
  EXPECT_NEAR(resumed, fitted, 0.02 * fitted);  // the scales of the columns come from the first file
}

TEST_F(TrainCommand, RowsBeyondTheMemoryAreFittedFromSums) {
  const std::string rows = write("rows.csv", houses(9000, 1));
  const std::string fresh = write("fresh.csv", houses(500, 2));
  // 3 MB hold about 2,000 rows during the fit.
  const json summed = run_json("train " + rows + " -m " + path("sums.dyad") + " --target price --memory 3M");
  EXPECT_EQ(summed.at("rows"), 9000);
  const double sums = run_json("evaluate -m " + path("sums.dyad") + " " + fresh).at("metrics").at("rmse");
  (void)run_json("train " + rows + " -m " + path("rows.dyad") + " --target price");
  const double all = run_json("evaluate -m " + path("rows.dyad") + " " + fresh).at("metrics").at("rmse");
  EXPECT_LT(sums, 1.06 * all);
}

TEST_F(TrainCommand, RowsSortedByTheTargetAreNoWorseThanTheConstant) {
  std::vector<std::pair<double, std::string>> lines;
  std::istringstream text(houses(6000, 1));
  std::string header;
  std::getline(text, header);
  const auto column =
      std::count(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(header.find("price")), ',');
  for (std::string line; std::getline(text, line);) {
    std::istringstream cells(line);
    std::string cell;
    for (std::ptrdiff_t c = 0; c <= column; ++c) std::getline(cells, cell, ',');
    lines.emplace_back(std::stod(cell), line);
  }
  std::sort(lines.begin(), lines.end());
  std::string sorted = header + "\n";
  for (const auto& [price, line] : lines) sorted += line + "\n";
  const std::string rows = write("sorted.csv", sorted);
  const std::string fresh = write("fresh.csv", houses(500, 2));
  for (const char* memory : {"3M", "1G"}) {
    (void)run_json("train " + rows + " -m " + path("m.dyad") + " --target price --memory " + memory);
    const json metrics = run_json("evaluate -m " + path("m.dyad") + " " + fresh).at("metrics");
    EXPECT_GT(metrics.at("r2"), 0.9) << memory;
  }
}

// A curve in x and a column with 100 levels without effect: held-out rows select the solver anova. A product of factors
// of two columns with 100 levels each: they select a low-rank model.
TEST_F(TrainCommand, HeldOutRowsSelectTheSolverOfTablesWithManyLevels) {
  std::string curves = "x,c,y\n";
  std::string factors = "x,c,d,y\n";
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<std::size_t> level(0, 99);
  std::vector<double> effects(100);
  for (double& effect : effects) effect = normal(random);
  for (int i = 0; i < 6000; ++i) {
    const double x = normal(random);
    const std::size_t c = level(random);
    const std::size_t d = level(random);
    curves += fmt::format("{},c{},{}\n", x, c, std::sin(3 * x) + 0.2 * normal(random));
    factors += fmt::format("{},c{},d{},{}\n", x, c, d, effects[c] * effects[d] + 0.2 * normal(random));
  }
  const json curve = run_json("train " + write("curves.csv", curves) + " -m " + path("m.dyad") + " --target y");
  EXPECT_EQ(curve.at("solver"), "anova");
  EXPECT_LT(run_json("evaluate -m " + path("m.dyad") + " " + path("curves.csv")).at("metrics").at("rmse"), 0.25);
  const json product = run_json("train " + write("factors.csv", factors) + " -m " + path("m.dyad") + " --target y");
  EXPECT_NE(product.at("solver"), "anova");
}

TEST_F(TrainCommand, AnovaRejectsOptionsOfLowRankModels) {
  const std::string rows = write("rows.csv", houses(100, 1));
  for (const char* options :
       {"--rank 2", "--passes 3", "--forget 10", "--memory 0", "--diagonal zero", "--kind sensing"})
    EXPECT_EQ(
        run_dyad("train " + rows + " --target price --solver anova -m " + path("m.dyad") + " " + options).exit_code, 2)
        << options;
  EXPECT_EQ(run_dyad("train " + rows + " --target price --solver newton --curves off -m " + path("m.dyad")).exit_code,
            2);
}

TEST_F(TrainCommand, TrainsOnATableAndPredicts) {
  const std::string rows = write("rows.csv", houses(6000, 1));
  const std::string fresh = write("fresh.csv", houses(500, 2));
  const json trained =
      run_json("train " + rows + " -m " + path("m.dyad") + " --target price --rank 2 --validation " + fresh);
  EXPECT_EQ(trained.at("rows"), 6000);
  EXPECT_EQ(trained.at("outcome"), "budget");
  EXPECT_EQ(trained.at("solver"), "sampling");
  EXPECT_NEAR(trained.at("noise"), 5, 1);
  EXPECT_GT(trained.at("passes"), 1);
  for (const char* field : {"row_reads", "seconds", "rows_per_second", "peak_rss_bytes"})
    EXPECT_GT(trained.at(field), 0);
  for (const char* metric : {"rmse", "mae", "r2"})
    for (const char* group : {"metrics", "progressive", "validation"}) EXPECT_TRUE(trained.at(group).contains(metric));
  EXPECT_GT(trained.at("validation").at("r2"), 0.9);
  EXPECT_TRUE(trained.at("warnings").empty());

  const json evaluated = run_json("evaluate -m " + path("m.dyad") + " " + fresh);
  EXPECT_EQ(evaluated.at("metrics").at("rmse"), trained.at("validation").at("rmse"));

  // The metrics of evaluate are those of the output of predict, which does not need the target.
  const Result predicted = run_dyad("predict --quiet -m " + path("m.dyad") + " " + fresh);
  ASSERT_EQ(predicted.exit_code, 0);
  const std::vector<double> values = numbers_of(predicted.out);
  const std::vector<double> targets = column_of(content(fresh), "price");
  ASSERT_EQ(values.size(), targets.size());
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) squares += (values[i] - targets[i]) * (values[i] - targets[i]);
  EXPECT_NEAR(std::sqrt(squares / 500), evaluated.at("metrics").at("rmse").get<double>(), 1e-9);
  const std::string without = write("without.csv", without_column(content(fresh), "price"));
  EXPECT_EQ(run_dyad("predict --quiet -m " + path("m.dyad") + " " + without).out, predicted.out);
}

TEST_F(TrainCommand, InspectedTermsReproduceThePredictions) {
  const auto with_garden = [](const std::string& text) {
    std::istringstream lines(text);
    std::string result;
    int row = 0;
    for (std::string line; std::getline(lines, line); ++row)
      result += (row == 0 ? "garden" : row % 3 == 0 ? "1" : "0") + ("," + line) + "\n";
    return result;
  };
  const std::string rows = write("rows.csv", with_garden(houses(4000, 1)));
  ASSERT_EQ(run_dyad("train --quiet " + rows + " -m " + path("m.dyad") + " --target price --rank 2").exit_code, 0);
  const json terms = run_json("inspect " + path("m.dyad") + " --top 1000 --export " + path("terms.csv"));
  EXPECT_TRUE(terms.at("pairs_are_exact"));
  const std::string fresh = write("fresh.csv", with_garden(houses(50, 2)));
  const std::vector<double> predicted = numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + fresh).out);
  const auto value = [&](const std::string& feature, std::size_t row) {
    const std::size_t equals = feature.find('=');
    const std::vector<std::string> cells = text_column_of(content(fresh), feature.substr(0, equals));
    return equals == std::string::npos ? std::stod(cells[row]) : cells[row] == feature.substr(equals + 1) ? 1.0 : 0.0;
  };
  for (std::size_t row = 0; row < 50; ++row) {
    double y = terms.at("intercept");
    for (const json& term : terms.at("weights"))
      y += term.at("coefficient").get<double>() * value(term.at("left"), row);
    for (const json& term : terms.at("pairs"))
      y += term.at("coefficient").get<double>() * value(term.at("left"), row) * value(term.at("right"), row);
    EXPECT_NEAR(y, predicted[row], 1e-6 * std::abs(y));
  }
  // The square of an indicator equals the indicator, so there is one coefficient.
  const auto is_categorical = [](const json& term) { return contains(term.at("left"), "="); };
  EXPECT_EQ(std::count_if(terms.at("weights").begin(), terms.at("weights").end(), is_categorical), 5);
  for (const json& term : terms.at("pairs")) EXPECT_FALSE(is_categorical(term) && term.at("left") == term.at("right"));
  EXPECT_FALSE(contains(content(path("terms.csv")), "square,district"));
  EXPECT_FALSE(contains(content(path("terms.csv")), "square,garden"));
  EXPECT_TRUE(contains(content(path("terms.csv")), "weight,garden"));
  EXPECT_TRUE(contains(content(path("terms.csv")), "square,area"));
  EXPECT_EQ(content(path("terms.csv")).substr(0, 35), "term,left,right,coefficient,effect\n");
  const Result text = run_dyad("inspect " + path("m.dyad"));
  for (const char* feature : {"area x rooms", "district="}) EXPECT_TRUE(contains(text.out, feature)) << text.out;
}

TEST_F(TrainCommand, AcceptsAnyClassLabels) {
  for (const auto& [negative, positive] : {std::pair{"0", "1"}, {"-1", "+1"}, {"ham", "spam"}}) {
    const std::string rows = write("rows.csv", mails(8000, 1, negative, positive));
    const json trained = run_json("train " + rows + " -m " + path("m.dyad") + " --target kind --rank 1 --batch 2000");
    for (const char* metric : {"logloss", "auc", "accuracy"}) EXPECT_TRUE(trained.at("metrics").contains(metric));
    const std::string fresh = write("fresh.csv", mails(2000, 2, negative, positive));
    const json metrics = run_json("evaluate -m " + path("m.dyad") + " " + fresh).at("metrics");
    EXPECT_LT(metrics.at("logloss"), 0.8 * metrics.at("best_constant").get<double>());
    EXPECT_GT(metrics.at("auc"), 0.8);
    for (const double p : numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + fresh).out)) {
      EXPECT_GT(p, 0);
      EXPECT_LT(p, 1);
    }
    const std::string labels = run_dyad("predict --quiet --labels -m " + path("m.dyad") + " " + fresh).out;
    const std::string first = labels.substr(0, labels.find('\n'));
    EXPECT_TRUE(first == negative || first == (std::string(positive) == "+1" ? "1" : positive)) << first;
  }
}

TEST_F(TrainCommand, RecoversPlantedModelsFromFiles) {
  const auto simulate = [&](const std::string& problem, const std::string& file) {
    ASSERT_EQ(run_dyad("simulate " + problem + " --quiet -o " + path(file)).exit_code, 0);
  };
  simulate("phase --dim 12 --rows 16000", "phase.csv");
  simulate("sensing --dim 12 --rank 2 --rows 16000", "sensing.svm");
  simulate("bilinear --dim 6x8 --rank 2 --rows 16000", "bilinear.npy");
  simulate("bilinear --dim 6x8 --rank 2 --rows 16000", "bilinear.csv");
  simulate("gfm --dim 12 --rank 2 --rows 16000 --intercept 3", "gfm.tsv");
  for (const std::string& arguments :
       {std::string("phase.csv --kind phase --target y"), std::string("sensing.svm --kind sensing --rank 2"),
        "bilinear.npy --kind bilinear --rank 2 --right 6- --target-file " + path("bilinear.target.npy"),
        std::string("bilinear.csv --kind bilinear --rank 2 --right 'right.*' --target y"),
        std::string("gfm.tsv --rank 2 --target y")}) {
    const json trained = run_json("train " + path(arguments) + " -m " + path("m.dyad"));
    EXPECT_LT(trained.at("metrics").at("rmse"), 1e-2 * trained.at("metrics").at("best_constant").get<double>())
        << arguments;
  }
  const json phase = run_json("train " + path("phase.csv --kind phase --target y -m ") + path("p.dyad"));
  const json inspected = run_json("inspect --top 100 " + path("p.dyad"));
  double norm = 0;
  for (const json& entry : inspected.at("signal")) norm += std::pow(entry.at("coefficient").get<double>(), 2);
  EXPECT_NEAR(norm, 1, 1e-3);
}

TEST_F(TrainCommand, ModelIsBitIdenticalForPipesAndCompressedFiles) {
  const std::string text = ratings(9000, 1);
  const std::string rows = write("rows.csv", text);
  ASSERT_EQ(std::system(("gzip -k " + rows).c_str()), 0);
  for (const char* passes : {" --passes 1", " --passes 4", " --solver kalman", " --solver newton", ""}) {
    const std::string options =
        " --quiet --target rating --rank 2 --batch 2000 --ignore noise" + std::string(passes) + " -m ";
    ASSERT_EQ(run_dyad("train " + rows + options + path("file.dyad")).exit_code, 0);
    ASSERT_EQ(run_dyad("train " + rows + ".gz" + options + path("gzip.dyad")).exit_code, 0);
    ASSERT_EQ(run_dyad("train " + rows + options + path("again.dyad")).exit_code, 0);
    EXPECT_EQ(content(path("file.dyad")), content(path("gzip.dyad"))) << passes;
    EXPECT_EQ(content(path("file.dyad")), content(path("again.dyad"))) << passes;
    if (*passes == '\0') continue;  // a pipe is read once by default
    ASSERT_EQ(run_dyad("train - --format csv < " + rows + options + path("pipe.dyad")).exit_code, 0);
    EXPECT_EQ(content(path("file.dyad")), content(path("pipe.dyad"))) << passes;
  }
}

TEST_F(TrainCommand, ResumedModelIsBitIdentical) {
  // New users and movies occur in both halves, so that the dictionary grows.
  const std::string text = ratings(10000, 1);
  const std::size_t header_end = text.find('\n') + 1;
  std::size_t middle = header_end;
  for (int i = 0; i < 5000; ++i) middle = text.find('\n', middle) + 1;
  const std::string all = write("all.csv", text);
  const std::string first = write("first.csv", text.substr(0, middle));
  const std::string second = write("second.csv", text.substr(0, header_end) + text.substr(middle));
  for (const char* extra : {"", " --precision single", " --hash-bits 6", " --kind bilinear --right movie"}) {
    const std::string options = " --quiet --passes 1 --target rating --categorical user,movie --rank 2 --batch 1700 " +
                                std::string(extra) + " -m ";
    ASSERT_EQ(run_dyad("train " + first + options + path("halves.dyad")).exit_code, 0);
    ASSERT_EQ(run_dyad("train " + second + " --quiet --resume -m " + path("halves.dyad")).exit_code, 0);
    ASSERT_EQ(run_dyad("train " + all + options + path("whole.dyad") + " --checkpoint-every 5000").exit_code, 0);
    EXPECT_TRUE(content(path("halves.dyad")) == content(path("whole.dyad"))) << extra;
    EXPECT_EQ(run_json("inspect " + path("whole.dyad")).at("training").at("rows"), "10000");
  }
}

TEST_F(TrainCommand, ResumeRejectsOtherOptions) {
  const std::string rows = write("rows.csv", ratings(500, 1));
  const std::string model = path("m.dyad");
  ASSERT_EQ(run_dyad("train --quiet " + rows + " -m " + model + " --target rating --ignore noise").exit_code, 0);
  const std::string before = content(model);
  for (const char* invalid :
       {"--rank 3", "--kind bilinear --right movie", "--target user", "--seed 7", "--precision single", "--hash-bits 5",
        "--task classification", "--ignore user", "--batch 7", "--categorical noise"}) {
    const Result result = run_dyad("train --quiet " + rows + " --resume -m " + model + " " + invalid);
    EXPECT_EQ(result.exit_code, 2) << invalid;
    const std::string option = std::string(invalid).substr(0, std::string(invalid).find(' '));
    EXPECT_TRUE(contains(result.err, option)) << result.err;
  }
  EXPECT_EQ(content(model), before);
  EXPECT_EQ(run_dyad("train --quiet " + rows + " --resume -m " + model +
                     " --target rating --ignore noise --categorical 'us*,movie' --rank 8 --seed 1")
                .exit_code,
            0);
  EXPECT_EQ(run_dyad("train --quiet " + rows + " --resume -m " + path("none.dyad")).exit_code, 3);
}

TEST_F(TrainCommand, InterruptSavesAResumableModel) {
  const std::string rows = write("rows.csv", houses(6000, 1));
  // The pipe stays open, so that training waits for rows when it is interrupted.
  const std::string command = "(cat " + rows + "; sleep 5) | " + DYAD_COMMAND +
                              " train - --format csv --target price -m " + path("m.dyad") + " 2>" + path("err") +
                              " & dyad=$!; sleep 1; kill -INT $dyad; wait $dyad; echo $?";
  FILE* shell = popen(("bash -c '" + command + "'").c_str(), "r");
  char exit_code[16] = {};
  ASSERT_NE(fgets(exit_code, sizeof exit_code, shell), nullptr);
  pclose(shell);
  EXPECT_EQ(std::string(exit_code), "130\n");
  EXPECT_NE(content(path("err")).find("interrupted"), std::string::npos);
  const json inspected = run_json("inspect " + path("m.dyad"));
  EXPECT_EQ(inspected.at("training").at("rows"), "4096");
  EXPECT_EQ(run_dyad("train --quiet " + rows + " --resume -m " + path("m.dyad")).exit_code, 0);
}

TEST_F(TrainCommand, InterruptBeforeTheFirstBlockWritesNoModel) {
  const std::string rows = write("rows.csv", houses(100, 1));
  const Result result =
      run_shell("bash -c '(cat " + rows + "; sleep 3) | " + DYAD_COMMAND + " train - --format csv --target price -m " +
                path("m.dyad") + " & dyad=$!; sleep 1; kill -TERM $dyad; wait $dyad'");
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_TRUE(contains(result.err, "interrupted")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("m.dyad")));
}

TEST_F(TrainCommand, SuggestedCommandIsQuotedForTheShell) {
  const std::string rows = write("rows.csv", houses(100, 1));
  const Result result = run_dyad("train " + rows + " --target price -m '" + path("it s.dyad") + "'");
  EXPECT_NE(result.err.find("dyad predict -m '" + path("it s.dyad") + "' DATA"), std::string::npos) << result.err;
}

TEST_F(TrainCommand, UnknownCategoriesAndMissingCellsArePredicted) {
  const std::string rows = write("rows.csv", ratings(3000, 1));
  ASSERT_EQ(run_dyad("train --quiet " + rows + " -m " + path("m.dyad") + " --target rating --ignore noise --rank 2")
                .exit_code,
            0);
  const std::string fresh = write("fresh.csv", "movie,user\nnever,unknown\nm1,u1\n,\n");
  const json predicted = run_json("predict -m " + path("m.dyad") + " " + fresh + " -o " + path("p.txt"));
  EXPECT_EQ(predicted.at("rows"), 3);
  EXPECT_GE(predicted.at("unknown_cells"), 2);
  EXPECT_EQ(numbers_of(content(path("p.txt"))).size(), 3U);
}

TEST_F(TrainCommand, WarnsIfTheModelIsConstant) {
  const std::string constant = write("constant.csv", "a,y\n1,5\n2,5\n3,5\n4,5\n");
  const json trained = run_json("train " + constant + " -m " + path("m.dyad") + " --target y");
  EXPECT_EQ(trained.at("warnings").size(), 1U);
  for (const double value : numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + constant).out))
    EXPECT_EQ(value, 5);
  const std::string few = write("few.csv", houses(40, 1));
  const json moment = run_json("train " + few + " --solver moment -m " + path("m.dyad") + " --target price");
  EXPECT_FALSE(moment.at("warnings").empty());
  const Result quiet = run_dyad("train --quiet " + few + " -m " + path("m.dyad") + " --target price");
  EXPECT_EQ(quiet.err + quiet.out, "");
}

TEST_F(TrainCommand, ProgressIsReportedAtDoublingRowCounts) {
  const std::string rows = write("rows.csv", houses(1000, 1));
  const Result result = run_dyad("train " + rows + " -m " + path("m.dyad") + " --target price");
  EXPECT_EQ(result.out, "");
  for (const char* label : {"target", "numeric", "categorical", "likelihood", "model", "solver"})
    EXPECT_FALSE(line_of(result.err, label).empty()) << label << "\n" << result.err;
  for (const char* column : {" rows ", " rmse ", " recent ", " constant ", " rows/s ", " memory\n"})
    EXPECT_TRUE(contains(result.err, column)) << column << "\n" << result.err;
  for (const char* count : {"\n           1 ", "\n           2 ", "\n         512 ", "\n        1000 "})
    EXPECT_NE(result.err.find(count), std::string::npos) << count;
  EXPECT_EQ(result.err.find("\n         600 "), std::string::npos);
  EXPECT_NE(result.err.find("dyad predict -m "), std::string::npos);
}

}  // namespace
}  // namespace dyad::test
