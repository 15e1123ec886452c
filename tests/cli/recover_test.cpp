#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command.h"

namespace dyad::test {
namespace {

using nlohmann::json;

TEST(RecoverCommand, JsonHasTheDocumentedFields) {
  const Result result = run_dyad("recover gfm --dim 50 --rank 2 --solver moment --tolerance 1e-6 --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json fields = json::parse(result.out);
  for (const char* field : {"rows", "row_reads", "seconds", "rows_per_second", "peak_rss_bytes", "error_w", "error_M",
                            "tan_theta", "noise"})
    EXPECT_TRUE(fields.at(field).is_number()) << field;
  EXPECT_EQ(fields.at("outcome"), "converged");
  EXPECT_LE(fields.at("error_w").get<double>() + fields.at("error_M").get<double>(), 1e-6);
  EXPECT_EQ(fields.at("trace").back().at("rows"), fields.at("rows"));
  EXPECT_EQ(fields.at("trace").size(), fields.at("rows").get<int>() / (6 * 50 * 2));
  for (const json& point : fields.at("trace"))
    for (const char* field : {"rows", "error_w", "error_M", "tan_theta"})
      EXPECT_TRUE(point.at(field).is_number()) << field;
}

TEST(RecoverCommand, EveryKindAndUpdateConverges) {
  for (const char* kind : {"gfm", "sensing", "phase"})
    for (const char* update : {"one-scan", "paper"}) {
      const Result result = run_dyad(std::string("recover ") + kind + " --dim 40 --update " + update +
                                     (kind == std::string("phase") ? "" : " --rank 2") + " --tolerance 1e-6 --json");
      EXPECT_EQ(result.exit_code, 0) << kind << ", " << update << ": " << result.err;
      EXPECT_EQ(json::parse(result.out).contains("error_a"), kind == std::string("phase"));
    }
}

TEST(RecoverCommand, BilinearAndNonGaussianProblemsConverge) {
  for (const char* arguments :
       {"bilinear --dim 20x30 --rank 2", "gfm --dim 40 --rank 2 --features uniform",
        "gfm --dim 40 --rank 2 --features rademacher --diagonal zero", "sensing --dim 40 --rank 2 --diagonal free"}) {
    const Result result = run_dyad(std::string("recover ") + arguments + " --tolerance 1e-6 --json --quiet");
    EXPECT_EQ(result.exit_code, 0) << arguments << ": " << result.out;
    EXPECT_EQ(json::parse(result.out).contains("error_squares"), std::string(arguments).ends_with("free"));
  }
}

TEST(RecoverCommand, TheoryMarksVacuousBounds) {
  const Result tight = run_dyad("recover gfm --dim 20 --rank 2 --batch 120000 --theory --update paper --json");
  const json trace = json::parse(tight.out).at("trace");
  EXPECT_FALSE(trace.at(0).contains("theory"));
  for (std::size_t t = 1; t < trace.size(); ++t) {
    const json& theory = trace.at(t).at("theory");
    EXPECT_TRUE(theory.at("applies").get<bool>());
    EXPECT_GE(theory.at("delta").get<double>(), theory.at("ci_rip").get<double>());
    EXPECT_FALSE(theory.at("vacuous").get<bool>());
    EXPECT_LE(trace.at(t).at("tan_theta").get<double>(), theory.at("alpha_bound").get<double>());
    EXPECT_LE(trace.at(t).at("error_w").get<double>(), theory.at("beta_bound").get<double>());
    EXPECT_LE(trace.at(t).at("error_M").get<double>(), theory.at("gamma_bound").get<double>());
  }
  EXPECT_FALSE(contains(tight.err, "vacuous"));
  const Result loose = run_dyad("recover gfm --dim 20 --rank 2 --batch 240 --theory");
  EXPECT_TRUE(contains(loose.err, "vacuous"));
}

TEST(RecoverCommand, NoisyTheoryReportsRateAndFloor) {
  const Result result = run_dyad(
      "recover gfm --dim 6 --rank 1 --noise 0.1 --residual 0.01 --batch 60000 --rows 240000 --theory --update paper "
      "--json");
  const json trace = json::parse(result.out).at("trace");
  for (std::size_t t = 1; t < trace.size(); ++t) {
    const json& theory = trace.at(t).at("theory");
    EXPECT_GT(theory.at("noise").get<double>(), 0);
    EXPECT_LT(theory.at("rate").get<double>(), 1);
    const double error = trace.at(t).at("error_w").get<double>() + trace.at(t).at("error_M").get<double>();
    const double index = trace.at(t).at("tan_theta").get<double>() + theory.at("index_weight").get<double>() * error;
    EXPECT_LE(index, theory.at("index_bound").get<double>());
    EXPECT_GT(theory.at("index_floor").get<double>(), 0);
  }
  EXPECT_TRUE(contains(result.err, "floor")) << result.err;
}

TEST(RecoverCommand, ProgressIsOneLinePerBatchOnStandardError) {
  const Result result = run_dyad("recover gfm --dim 30 --rank 2 --rows 3600 --batch 360");
  const json fields = json::parse(run_dyad("recover gfm --dim 30 --rank 2 --rows 3600 --batch 360 --json").out);
  int lines = 0;
  std::istringstream text(result.err);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    long rows = 0;
    if (!(words >> rows)) continue;
    EXPECT_EQ(rows, fields.at("trace").at(static_cast<std::size_t>(lines++)).at("rows"));
  }
  EXPECT_EQ(lines, 10);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << "standard output is the outcome alone";
}

TEST(RecoverCommand, QuietSuppressesMessagesOnly) {
  const std::string arguments = "recover gfm --dim 30 --rank 2 --rows 3600 --json";
  json loud = json::parse(run_dyad(arguments).out);
  const Result result = run_dyad(arguments + " --quiet");
  EXPECT_EQ(result.err, "");
  json quiet = json::parse(result.out);
  EXPECT_EQ(loud.at("trace").dump(), quiet.at("trace").dump());
}

TEST(RecoverCommand, EqualSeedsGiveEqualTraces) {
  const auto trace = [](const std::string& seed) {
    return json::parse(run_dyad("recover gfm --dim 30 --rank 2 --json --quiet --seed " + seed).out).at("trace").dump();
  };
  EXPECT_EQ(trace("7"), trace("7"));
  EXPECT_NE(trace("7"), trace("8"));
}

TEST(RecoverCommand, MissedToleranceExitsOne) {
  const Result missed = run_dyad("recover gfm --dim 30 --rank 2 --rows 3600 --solver moment --tolerance 1e-6 --json");
  EXPECT_EQ(missed.exit_code, 1);
  EXPECT_EQ(json::parse(missed.out).at("outcome"), "budget");
  EXPECT_EQ(run_dyad("recover gfm --dim 30 --rank 2 --rows 3600").exit_code, 0);
  const Result diverged = run_dyad("recover gfm --dim 60 --rank 2 --batch 60 --rows 12000 --tolerance 1e-6 --json");
  EXPECT_EQ(diverged.exit_code, 1);
  EXPECT_EQ(json::parse(diverged.out).at("outcome"), "diverged");
  EXPECT_NE(diverged.err.find("warning"), std::string::npos);
}

TEST(RecoverCommand, EverySolverConverges) {
  for (const char* kind :
       {"gfm --dim 40 --rank 2", "sensing --dim 40 --rank 2", "phase --dim 60", "bilinear --dim 20x30 --rank 2"})
    for (const char* solver : {"auto", "auto --memory 0", "kalman", "newton", "newton --memory 10M"}) {
      const Result result = run_dyad(std::string("recover ") + kind + " --tolerance 1e-6 --json --solver " + solver);
      EXPECT_EQ(result.exit_code, 0) << kind << ", " << solver << ": " << result.err;
      const json fields = json::parse(result.out);
      const bool caches_rows = solver == std::string("auto") || std::string(solver).starts_with("newton");
      EXPECT_EQ(fields.at("row_reads") > fields.at("rows"), caches_rows);
      EXPECT_TRUE(contains(result.err, "\nsolver ")) << result.err;
    }
}

TEST(RecoverCommand, NewtonCachesWithinMemory) {
  const Result rejected = run_dyad("recover gfm --dim 100 --rank 3 --solver newton --memory 100K");
  EXPECT_EQ(rejected.exit_code, 2);
  EXPECT_TRUE(contains(rejected.err, "100000")) << rejected.err;
  const json all = json::parse(run_dyad("recover gfm --dim 40 --rank 2 --solver newton --rows 777 --json --quiet").out);
  EXPECT_EQ(all.at("rows"), 777);
}

TEST(RecoverCommand, InvalidArgumentsExitTwo) {
  const std::pair<const char*, const char*> cases[] = {
      {"gfm --dim 20 --rank 0", "--rank"},
      {"gfm --dim 20 --memory lots", "--memory"},
      {"gfm --dim 20 --memory -1", "--memory"},
      {"gfm --dim 20 --solver newton --batch 100", "batch"},
      {"gfm --dim 20 --rank 21", "--rank"},
      {"gfm --dim 20 --rank -3", "--rank"},
      {"gfm --dim 20 --rank 5 --batch 4", "batch"},
      {"cubic --dim 20", "gfm, sensing, phase, bilinear"},
      {"gfm --dim 20 --noise -1", "noise"},
      {"gfm --dim 20 --noise nan", "noise"},
      {"gfm --dim 0", "--dim"},
      {"gfm --dim 99999999999", "--dim"},
      {"gfm --dim many", "--dim"},
      {"gfm --dim 60x80", "dim"},
      {"bilinear --dim 60", "dim"},
      {"bilinear --dim 60x80 --rank 61", "--rank"},
      {"bilinear --dim 60x80 --theory", "theory"},
      {"gfm --dim 20 --features uniform --theory", "theory"},
      {"gfm --dim 60x0", "--dim"},
      {"gfm --dim 20 --rows 0", "--rows"},
      {"gfm --dim 20 --rows -5", "--rows"},
      {"gfm --dim 20 --batch 922337203685477580", "batch"},
      {"gfm --dim 2147483647 --rank 2147483647", "dim"},
      {"gfm --dim 20 --features rademacher --diagonal free", "diagonal"},
      {"gfm --dim 20 --moments wrong", "auto, gaussian, estimated"},
      {"gfm --dim 20 --diagonal none", "tied, zero, free"},
      {"phase --dim 20 --diagonal free", "diagonal"},
      {"gfm --dim 20 --condition 0.1", "--condition"},
      {"gfm --dim 20 --residual 1", "--residual"},
      {"gfm --dim 20 --tolerance 0", "--tolerance"},
      {"gfm --dim 20 --batch 500 --rows 400", "--rows"},
      {"gfm --dim 20 --update newton", "one-scan, paper"},
      {"gfm --dim 20 --seed -1", "--seed"},
      {"gfm --dim 20 --threads -1", "--threads"},
      {"phase --dim 20 --rank 2", "rank"},
      {"gfm", "--dim"},
      {"--dim 20", "KIND"},
      {"gfm --dim 20 --frobnicate", "--frobnicate"},
  };
  for (const auto& [arguments, expected] : cases) {
    const Result result = run_dyad(std::string("recover ") + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_NE(result.err.find(expected), std::string::npos) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
  }
  EXPECT_EQ(run_dyad("").exit_code, 2);
  EXPECT_EQ(run_dyad("frobnicate").exit_code, 2);
}

TEST(RecoverCommand, HelpAndVersion) {
  for (const char* arguments : {"--help", "recover --help", "--version", "recover --version"}) {
    const Result result = run_dyad(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments;
    EXPECT_FALSE(result.out.empty()) << arguments;
  }
}

TEST(RecoverCommand, UnwritableMessagesAreIgnored) {
  EXPECT_EQ(run_dyad("recover gfm --dim 10 --rank 1 2>/dev/full").exit_code, 0);
  EXPECT_EQ(run_dyad("recover gfm --dim 10 --rank 1 2>&-").exit_code, 0);
  EXPECT_EQ(run_dyad("recover gfm --dim 10 --rank 11 2>/dev/full").exit_code, 2);
}

TEST(RecoverCommand, ReportsTheErrorOfTheIntercept) {
  const json fields = json::parse(run_dyad("recover gfm --dim 20 --rank 1 --intercept 3 --json --quiet").out);
  EXPECT_LT(fields.at("error_b").get<double>(), 1e-5);
  EXPECT_GT(fields.at("trace").at(0).at("error_b").get<double>(), 1e-3);
}

TEST(RecoverCommand, FullDiskExitsOne) {
  const Result result = run_dyad("recover gfm --dim 10 --rank 1 --json --quiet >/dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("standard output"), std::string::npos);
}

TEST(RecoverCommand, InterruptExits130AndPrintsJson) {
  for (const std::string signal : {"INT", "TERM"}) {
    const Result result = run_dyad("recover gfm --dim 400 --rank 8 --noise 1 --json --quiet & pid=$!; sleep 1; kill -" +
                                   signal + " $pid; wait $pid");
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_EQ(json::parse(result.out).at("outcome"), "interrupted");
    EXPECT_TRUE(json::parse(result.out).at("error_M").is_number());
  }
}

#ifndef DYAD_SANITIZED
TEST(RecoverCommand, MemoryDoesNotGrowWithTheRows) {
  const auto peak = [](const std::string& rows) {
    const Result result = run_dyad("recover gfm --dim 20000 --rank 4 --batch 400 --json --quiet --rows " + rows);
    return json::parse(result.out).at("peak_rss_bytes").get<double>();
  };
  constexpr double size_of_U = 20000.0 * 4 * 8;
  const double small = peak("400");
  const double large = peak("4000");
  EXPECT_LT(large, 64e6 + 12 * size_of_U);
  EXPECT_LT(large, 1.05 * small);
}
#endif

}  // namespace
}  // namespace dyad::test
