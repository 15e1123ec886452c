#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

using nlohmann::json;

class KalmanCommand : public CommandTest {
 protected:
  /// Trains on planted rows with noise. Returns the fractions of new targets within 1 and 1.96 predicted standard
  /// deviations.
  std::pair<double, double> coverage(const std::string& problem, const std::string& train) {
    EXPECT_EQ(run_dyad("simulate " + problem + " --quiet --rows 30000 -o " + path("rows.csv")).exit_code, 0);
    const std::string text = content(path("rows.csv"));
    std::size_t middle = 0;
    for (int i = 0; i <= 20000; ++i) middle = text.find('\n', middle) + 1;
    const std::string header = text.substr(0, text.find('\n') + 1);
    const std::string training = write("training.csv", text.substr(0, middle));
    const std::string fresh = write("fresh.csv", header + text.substr(middle));
    EXPECT_EQ(run_dyad("train --quiet " + training + " --target y -m " + path("m.dyad") + train).exit_code, 0);
    const Result predicted = run_dyad("predict --quiet --std -m " + path("m.dyad") + " " + fresh);
    EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
    std::istringstream lines(predicted.out);
    double one = 0;
    double two = 0;
    double count = 0;
    for (const double y : column_of(content(fresh), "y")) {
      std::string line;
      std::getline(lines, line);
      const std::vector<std::string> cells = cells_of(line);
      EXPECT_EQ(cells.size(), 2U);
      const double z = std::abs(y - std::stod(cells[0])) / std::stod(cells[1]);
      one += z < 1 ? 1 : 0;
      two += z < 1.96 ? 1 : 0;
      count += 1;
    }
    return {one / count, two / count};
  }
};

TEST_F(KalmanCommand, PredictionIntervalsHaveNominalCoverage) {
  for (const auto& [problem, train] :
       {std::pair<std::string, std::string>{"gfm --dim 30 --rank 2 --noise 1", " --rank 2"},
        {"gfm --dim 30 --rank 2 --noise 0.1", " --rank 2 --solver kalman"},
        {"sensing --dim 20 --rank 2 --noise 0.5", " --rank 2 --kind sensing"},
        {"phase --dim 30 --noise 0.3", " --kind phase"},
        {"bilinear --dim 10x15 --rank 2 --noise 0.5", " --rank 2 --kind bilinear --right 'right.*'"},
        {"gfm --dim 30 --rank 2 --noise 1", " --rank 2 --precision single"},
        {"gfm --dim 30 --rank 2 --noise 1", " --rank 2 --solver newton"},
        {"gfm --dim 30 --rank 2 --noise 1", " --rank 2 --solver variational"},
        {"sensing --dim 20 --rank 2 --noise 0.5", " --rank 2 --kind sensing --solver newton"}}) {
    const auto [one, two] = coverage(problem, train);
    EXPECT_GE(one, 0.66) << problem;
    EXPECT_LE(one, 0.70) << problem;
    EXPECT_GE(two, 0.94) << problem;
    EXPECT_LE(two, 0.96) << problem;
  }
}

TEST_F(KalmanCommand, StandardDeviationsRequireAPosterior) {
  const std::string rows = write("rows.csv", mails(3000, 1, "ham", "spam"));
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target kind -m " + path("m.dyad")).exit_code, 0);
  const Result predicted = run_dyad("predict --quiet --std -m " + path("m.dyad") + " " + rows);
  std::istringstream lines(predicted.out);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> cells = cells_of(line);
    ASSERT_EQ(cells.size(), 2U);
    EXPECT_GT(std::stod(cells[1]), 0);
    EXPECT_LT(std::stod(cells[1]), 0.5);
  }
  EXPECT_EQ(run_dyad("predict --quiet --std --labels -m " + path("m.dyad") + " " + rows).out.substr(0, 1),
            run_dyad("predict --quiet --labels -m " + path("m.dyad") + " " + rows).out.substr(0, 1));
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --solver moment --target kind -m " + path("m.dyad")).exit_code, 0);
  const Result rejected = run_dyad("predict --quiet --std -m " + path("m.dyad") + " " + rows);
  EXPECT_EQ(rejected.exit_code, 2);
  EXPECT_TRUE(contains(rejected.err, "m.dyad")) << rejected.err;
}

TEST_F(KalmanCommand, ResumedModelIsBitIdentical) {
  for (const int half : {60, 4500}) {  // before and after the fit to the buffered rows
    const std::string text = houses(2 * half, 1);
    const std::size_t header_end = text.find('\n') + 1;
    std::size_t middle = header_end;
    for (int i = 0; i < half; ++i) middle = text.find('\n', middle) + 1;
    const std::string all = write("all.csv", text);
    const std::string first = write("first.csv", text.substr(0, middle));
    const std::string second = write("second.csv", text.substr(0, header_end) + text.substr(middle));
    for (const char* extra : {"", " --forget 1000", " --solver kalman --precision single", " --range 0,1e9"}) {
      const std::string options = " --quiet --passes 1 --target price --rank 2" + std::string(extra) + " -m ";
      ASSERT_EQ(run_dyad("train " + first + options + path("halves.dyad")).exit_code, 0);
      ASSERT_EQ(run_dyad("train " + second + " --quiet --resume -m " + path("halves.dyad")).exit_code, 0);
      ASSERT_EQ(run_dyad("train " + all + options + path("whole.dyad") + " --checkpoint-every " + std::to_string(half))
                    .exit_code,
                0);
      EXPECT_TRUE(content(path("halves.dyad")) == content(path("whole.dyad"))) << extra;
    }
  }
}

TEST_F(KalmanCommand, ResumedDenseModelIsBitIdentical) {
  ASSERT_EQ(run_dyad("simulate gfm --dim 6 --rank 2 --noise 0.3 --rows 6000 --quiet -o " + path("all.csv")).exit_code,
            0);
  const std::string text = content(path("all.csv"));
  const std::size_t header_end = text.find('\n') + 1;
  std::size_t middle = header_end;
  for (int i = 0; i < 3000; ++i) middle = text.find('\n', middle) + 1;
  const std::string first = write("first.csv", text.substr(0, middle));
  const std::string second = write("second.csv", text.substr(0, header_end) + text.substr(middle));
  for (const char* extra : {"", " --memory 0 --rank 4", " --forget 500 --diagonal tied"}) {
    const std::string options = " --quiet --passes 1 --target y" + std::string(extra) + " -m ";
    ASSERT_EQ(run_dyad("train " + first + options + path("halves.dyad")).exit_code, 0);
    ASSERT_EQ(run_dyad("train " + second + " --quiet --resume -m " + path("halves.dyad")).exit_code, 0);
    ASSERT_EQ(
        run_dyad("train " + path("all.csv") + options + path("whole.dyad") + " --checkpoint-every 3000").exit_code, 0);
    EXPECT_TRUE(content(path("halves.dyad")) == content(path("whole.dyad"))) << extra;
  }
}

TEST_F(KalmanCommand, EarlyOutliersHaveBoundedInfluence) {
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  for (const std::string outlier : {"features", "targets"}) {
    std::ostringstream text;
    for (int i = 0; i < 8000; ++i) {
      const int user = static_cast<int>(random() % 30);
      const int item = static_cast<int>(random() % 20);
      const double y = user % 3 - item % 4 + (user % 2 == item % 2 ? 1 : -1) + 0.1 * normal(random);
      text << (outlier == "targets" && i == 5 ? 1e9 : y) << ' ' << user << ":1 " << 30 + item << ':'
           << (outlier == "features" && i == 5 ? "1e9" : "1") << '\n';
    }
    const std::string rows = write("rows.svm", text.str());
    EXPECT_GT(run_json("train " + rows + " -m " + path("m.dyad")).at("metrics").at("r2"), 0.95) << outlier;
  }
}

TEST_F(KalmanCommand, NewAndMissingFeaturesAreAccepted) {
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  std::ostringstream text;
  for (int i = 0; i < 9000; ++i) {
    // Dense rows with 10 features, then sparse rows with 40 features.
    const int features = i < 4200 ? 10 : 40;
    double sum = 0;
    std::ostringstream entries;
    for (int j = 1; j <= features; ++j) {
      if (i >= 4200 && random() % 4 != 0) continue;
      const double x = normal(random);
      sum += x * (j % 3 - 1);
      entries << ' ' << j << ':' << x;
    }
    text << sum * sum << entries.str() << '\n';
  }
  const std::string rows = write("rows.svm", text.str());
  for (const char* kind : {"gfm", "phase", "sensing", "bilinear --right 6-"}) {
    const std::string options = std::string(" --kind ") + kind + " -m " + path("m.dyad");
    const json trained = run_json("train " + rows + options);
    EXPECT_TRUE(trained.at("metrics").at("rmse").is_number()) << kind;
    EXPECT_EQ(run_dyad("train --quiet " + rows + " --resume -m " + path("m.dyad")).exit_code, 0) << kind;
    EXPECT_EQ(run_dyad("predict --std --quiet " + rows + " -m " + path("m.dyad")).exit_code, 0) << kind;
  }
}

TEST_F(KalmanCommand, SavedModelsCanBeResumedAndUsed) {
  // Zero weights at the start; a category that is absent for thousands of half-lives; single precision.
  std::ostringstream text;
  text << "a,b,w,y\n";
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  for (int i = 0; i < 6000; ++i) {
    const double a = normal(random);
    text << a << ',' << (i == 3 || i == 5500 ? "rare" : "common") << ',' << (i < 600 ? 0 : 1) << ',' << 2 * a << '\n';
  }
  const std::string rows = write("rows.csv", text.str());
  for (const char* extra :
       {" --weight w", " --forget 1", " --precision single", " --weight w --precision single --rank 3",
        " --precision single --categorical b --diagonal free"}) {
    ASSERT_EQ(run_dyad("train --quiet " + rows + " --target y -m " + path("m.dyad") + extra).exit_code, 0) << extra;
    EXPECT_EQ(run_dyad("train --quiet " + rows + " --resume -m " + path("m.dyad")).exit_code, 0) << extra;
    const Result predicted = run_dyad("predict --quiet --std " + rows + " -m " + path("m.dyad"));
    EXPECT_EQ(predicted.exit_code, 0) << extra << predicted.err;
    EXPECT_EQ(predicted.out.find("nan"), std::string::npos);
  }
}

TEST_F(KalmanCommand, ResumeRejectsOtherSolverOptions) {
  const std::string rows = write("rows.csv", houses(500, 1));
  const std::string model = path("m.dyad");
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target price --forget 100 -m " + model).exit_code, 0);
  for (const char* invalid : {"--solver moment", "--forget 7", "--range 0,5"}) {
    const Result result = run_dyad("train --quiet " + rows + " --resume -m " + model + " " + invalid);
    EXPECT_EQ(result.exit_code, 2) << invalid;
    const std::string option = std::string(invalid).substr(0, std::string(invalid).find(' '));
    EXPECT_TRUE(contains(result.err, option)) << invalid << result.err;
  }
  EXPECT_EQ(run_dyad("train --quiet " + rows + " --resume --forget 100 -m " + model).exit_code, 0);
}

/// Scores 5 + 4 x1 + 3 x1 x2 + noise, censored at 0 and 10.
std::string censored(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<> normal;
  std::ostringstream text;
  text << "x1,x2,score\n";
  for (int i = 0; i < count; ++i) {
    const double x1 = normal(random);
    const double x2 = normal(random);
    text << x1 << ',' << x2 << ',' << std::clamp(5 + 4 * x1 + 3 * x1 * x2 + 0.2 * normal(random), 0.0, 10.0) << '\n';
  }
  return text.str();
}

TEST_F(KalmanCommand, EstimatesTheRangeOfCensoredTargets) {
  const std::string rows = write("rows.csv", censored(8000, 1));
  const std::string fresh = write("fresh.csv", censored(2000, 2));
  const Result trained = run_dyad("train " + rows + " --target score --rank 2 -m " + path("m.dyad"));
  EXPECT_TRUE(contains(line_of(trained.err, "likelihood"), "gaussian, censored at 0 and 10")) << trained.err;
  for (const double value : numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + fresh).out)) {
    EXPECT_GE(value, 0);
    EXPECT_LE(value, 10);
  }
  const double found = run_json("evaluate -m " + path("m.dyad") + " " + fresh).at("metrics").at("rmse");
  EXPECT_LT(found, 0.3);
  // Without targets at its bounds, a range has no effect.
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target score --rank 2 --range -1000,1000 -m " + path("wide.dyad"))
                .exit_code,
            0);
  EXPECT_GT(run_json("evaluate -m " + path("wide.dyad") + " " + fresh).at("metrics").at("rmse"), 3 * found);
  const Result outside = run_dyad("train --quiet " + rows + " --target score --range 0,5 -m " + path("m.dyad"));
  EXPECT_EQ(outside.exit_code, 3);
  EXPECT_TRUE(contains(outside.err, "rows.csv")) << outside.err;
  // Evaluation accepts targets outside of the range.
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target score --range 0,10 -m " + path("m.dyad")).exit_code, 0);
  const std::string beyond = write("beyond.csv", "x1,x2,score\n1,2,11\n");
  EXPECT_EQ(run_dyad("evaluate --quiet -m " + path("m.dyad") + " " + beyond).exit_code, 0);
  for (const char* invalid : {"--range 5,5", "--range 5,1", "--range 1", "--range a,b", "--range 0,1 --solver moment",
                              "--range 0,1 --task classification"})
    EXPECT_EQ(run_dyad("train --quiet " + rows + " --target score -m " + path("m.dyad") + " " + invalid).exit_code, 2)
        << invalid;
}

TEST_F(KalmanCommand, EstimatedRangeIsDroppedWhenExceeded) {
  std::string text = censored(5000, 1);
  for (int i = 0; i < 50; ++i) text += "0.1,0.2,25\n";
  const std::string rows = write("rows.csv", text);
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target score --rank 2 --forget 20 -m " + path("m.dyad")).exit_code,
            0);
  const std::string one = write("one.csv", "x1,x2\n0.1,0.2\n");
  EXPECT_GT(numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + one).out).front(), 11);
}

TEST_F(KalmanCommand, SolverLineDependsOnDataAndMemory) {
  const std::string dense = write("dense.csv", houses(3000, 1));
  const std::string sparse = write("sparse.csv", ratings(3000, 1));
  const auto solver_line = [&](const std::string& arguments) {
    return line_of(run_dyad("train " + arguments + " -m " + path("m.dyad")).err, "solver");
  };
  ASSERT_EQ(run_dyad("simulate gfm --dim 10 --rows 3000 --quiet -o " + path("planted.csv")).exit_code, 0);
  const std::string planted = path("planted.csv") + " --target y --rank 2";
  const std::set<std::string> lines{solver_line(planted), solver_line(planted + " --memory 0"),
                                    solver_line(sparse + " --target rating --ignore noise"),
                                    solver_line(dense + " --target price --solver moment")};
  EXPECT_EQ(lines.size(), 4U);
  for (const std::string& line : lines) EXPECT_FALSE(line.empty());
  EXPECT_TRUE(contains(solver_line(dense + " --target price --solver moment"), "moment"));
}

TEST_F(KalmanCommand, ForgettingTracksDrift) {
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  std::ostringstream text;
  text << "a,b,y\n";
  for (int i = 0; i < 20000; ++i) {
    const double a = normal(random);
    const double b = normal(random);
    text << a << ',' << b << ',' << std::sin(i / 1000.0) * a + std::cos(i / 1000.0) * a * b + 0.1 * normal(random)
         << '\n';
  }
  const std::string rows = write("rows.csv", text.str());
  const auto rmse = [&](const std::string& extra) {
    return run_json("train " + rows + " --target y --rank 2 --solver kalman -m " + path("m.dyad") + extra)
        .at("metrics")
        .at("rmse")
        .get<double>();
  };
  EXPECT_LT(rmse(" --forget 100"), 0.25);
  EXPECT_LT(rmse(" --forget 100"), 0.5 * rmse(""));
}

TEST_F(KalmanCommand, BadlyScaledRowsDoNotDiverge) {
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  const auto table = [&](auto&& change) {
    std::ostringstream text;
    for (int i = 0; i < 6000; ++i) {
      double x[3] = {normal(random), normal(random), normal(random)};
      double y = x[0] + x[1] * x[2] + 0.1 * normal(random);
      change(i, x, y);
      text << y;
      for (int j = 0; j < 3; ++j)
        if (x[j] != 0) text << ' ' << j << ':' << x[j];
      text << '\n';
    }
    return text.str();
  };
  const std::pair<const char*, std::string> files[] = {
      {"large", table([](int, double* x, double&) {
         for (int j = 0; j < 3; ++j) x[j] *= 1e6;
       })},
      {"small", table([](int, double* x, double&) {
         for (int j = 0; j < 3; ++j) x[j] *= 1e-6;
       })},
      {"both", table([](int, double* x, double&) { x[0] *= 1e6, x[1] *= 1e-6; })},
      {"constant", table([](int, double* x, double&) { x[0] = 7; })},
      {"twice", table([](int, double* x, double&) { x[0] = x[1]; })},
      {"outliers", table([](int i, double* x, double&) {
         if (i % 997 == 0) x[0] = 1e9;
       })},
      {"outlying targets", table([](int i, double*, double& y) {
         if (i % 997 == 0) y = 1e9;
       })},
      {"large targets", table([](int, double*, double& y) { y *= 1e6; })},
      {"empty rows", table([](int i, double* x, double&) {
         if (i % 2 == 0) x[0] = x[1] = x[2] = 0;
       })},
      {"all empty", table([](int, double* x, double&) { x[0] = x[1] = x[2] = 0; })},
      {"sorted", table([](int i, double* x, double& y) { x[0] = i / 1000.0, y = i / 1000.0; })},
      {"one row", table([](int, double* x, double& y) { x[0] = x[1] = x[2] = 1, y = 3; })}};
  for (const auto& [name, text] : files) {
    const std::string rows = write("rows.svm", text);
    for (const char* solver : {" --solver auto", " --solver kalman", " --solver auto --precision single --memory 0"}) {
      const json trained = run_json("train " + rows + " -m " + path("m.dyad") + solver);
      const json& metrics = trained.at("metrics");
      // Progressive losses are not reported for rows sorted by the target.
      ASSERT_EQ(metrics.at("rmse").is_number(), std::string(name) != "sorted") << name << solver;
      if (metrics.at("rmse").is_number()) {
        EXPECT_LE(metrics.at("rmse").get<double>(), 1.1 * metrics.at("best_constant").get<double>() + 1e-6)
            << name << solver;
      }
      for (const double value : numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + rows).out))
        ASSERT_TRUE(std::isfinite(value)) << name;
    }
  }
}

}  // namespace
}  // namespace dyad::test
