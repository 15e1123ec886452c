#include <commands.h>

#include <stdexcept>

#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/made_data.h"

namespace dyad::test {
namespace {

/// The config file, the environment and the command line, each stronger than the one before.
class Settings : public InFolderOfFiles {
 protected:
  /// The line of --print-config for this option.
  [[nodiscard]] static std::string line(const std::string& name, const std::string& arguments,
                                        const std::string& before = "") {
    const Result result = run_dyad(arguments + " --print-config", before);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(result.out);
    for (std::string text; std::getline(lines, text);)
      if (text.starts_with(name + " = ") || text.starts_with("# " + name + " = ")) return text;
    return "";
  }

  static void expect_error(const std::string& arguments, const std::string& before,
                           const std::vector<std::string>& in_message) {
    const Result result = run_dyad(arguments, before);
    EXPECT_EQ(result.exit_code, 2) << before << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "");
    for (const std::string& part : in_message) EXPECT_TRUE(contains(result.err, part)) << part << "\n" << result.err;
  }
};

TEST_F(Settings, EachStepIsStrongerThanTheOneBefore) {
  const std::string config = "--config " + write("dyad.toml", "rank = 3\n");
  EXPECT_TRUE(line("rank", "train").starts_with("# rank = K  # Rank of M"));
  EXPECT_EQ(line("rank", "train " + config), "rank = 3  # config " + path("dyad.toml") + ", line 1");
  EXPECT_EQ(line("rank", "train " + config, "DYAD_RANK=4 "), "rank = 4  # environment DYAD_RANK");
  EXPECT_EQ(line("rank", "train --rank 5 " + config, "DYAD_RANK=4 "), "rank = 5  # flag");
  EXPECT_EQ(line("rank", "train " + config, "DYAD_RANK= "), line("rank", "train " + config)) << "empty is as none";
  EXPECT_EQ(line("rank", "train", "DYAD_CONFIG=" + path("dyad.toml") + " "), line("rank", "train " + config));
}

TEST_F(Settings, HaveTheEffectOfTheOption) {
  const std::string rows = write("rows.csv", houses(300, 1));
  const std::string config =
      write("dyad.toml", "target = price\nquiet = yes\nmodel = '" + path("m.dyad") + "'\n[train]\nrank = 3\n");
  const Result trained = run_dyad("train " + rows + " --config " + config);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err, "");
  EXPECT_EQ(run_json("inspect " + path("m.dyad"))["rank"], 3);
  EXPECT_EQ(run_dyad("evaluate " + rows, "DYAD_CONFIG=" + config + " ").exit_code, 0);
}

TEST_F(Settings, ASectionGoesBeforeTheTop) {
  const std::string config =
      "--config " + write("dyad.toml", "seed = 1\nrank = 3\n\n[train]\nrank = 4\n[recover]\nrank=5\n");
  EXPECT_TRUE(line("rank", "train " + config).starts_with("rank = 4 "));
  EXPECT_TRUE(line("rank", "recover " + config).starts_with("rank = 5 "));
  EXPECT_TRUE(line("rank", "simulate " + config).starts_with("rank = 3 "));
  EXPECT_EQ(run_dyad("inspect --print-config " + config).exit_code, 0) << "inspect has no rank, others have";
}

TEST_F(Settings, ListsAreReplacedAndFlagsAreWords) {
  const std::string config =
      "--config " + write("dyad.toml", "[train]\ncategorical = [\"a\", 'b c', d] # three\nresume = true\n");
  EXPECT_TRUE(line("categorical", "train " + config).starts_with("categorical = \"a,b c,d\" "));
  EXPECT_TRUE(line("categorical", "train --categorical x " + config, "DYAD_CATEGORICAL=y ")
                  .starts_with("categorical = \"x\" "));
  EXPECT_TRUE(line("categorical", "train " + config, "DYAD_CATEGORICAL=y,z ").starts_with("categorical = \"y,z\" "));
  EXPECT_TRUE(line("resume", "train " + config).starts_with("resume = true "));
  EXPECT_TRUE(line("resume", "train " + config, "DYAD_RESUME=0 ").starts_with("resume = false  # environment"));
  EXPECT_TRUE(line("resume", "train --resume " + config, "DYAD_RESUME=0 ").starts_with("resume = true  # flag"));
  EXPECT_EQ(line("quiet", "train " + config), "quiet = false  # default");
  EXPECT_EQ(line("quiet", "train --quiet --quiet"), "quiet = true  # flag");
  const std::string none = "--config " + write("none.toml", "categorical = a\n[train]\ncategorical = []\n");
  EXPECT_TRUE(line("categorical", "train " + none).starts_with("# categorical"));
}

TEST_F(Settings, PrintedSettingsGiveThemselvesAgain) {
  const std::string options =
      "train --rank 3 --target 'a \"b\" # c' --categorical u,v --categorical w --range -1,5 --memory 20M --resume "
      "--solver kalman -m 'x\\y.dyad' --checkpoint-every 10 --forget 100";
  const auto without_origins = [](const std::string& text) {
    std::istringstream lines(text);
    std::string result;
    for (std::string one; std::getline(lines, one);) result += one.substr(0, one.rfind("  # ")) + "\n";
    return result;
  };
  const Result first = run_dyad(options + " --print-config");
  const Result again = run_dyad("train --print-config --config " + write("again.toml", first.out));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(contains(first.out, R"(target = "a \"b\" # c")")) << first.out;
  EXPECT_EQ(without_origins(again.out), without_origins(first.out));
  for (const char* verb : {"train", "predict", "evaluate", "inspect", "recover", "simulate"}) {
    const Result plain = run_dyad(std::string(verb) + " --print-config");
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_EQ(run_dyad(std::string(verb) + " --print-config --config " + write("plain.toml", plain.out)).exit_code, 0);
  }
}

TEST_F(Settings, WrongOnesAreNamedWithTheirPlace) {
  const auto config = [&](const std::string& text) { return "train --config " + write("dyad.toml", text); };
  expect_error("train", "DYAD_RANK=x ", {"DYAD_RANK", "whole number", "'x'"});
  expect_error("train", "DYAD_RESUME=maybe ", {"DYAD_RESUME", "true or false", "'maybe'"});
  expect_error("train", "DYAD_SOLVER=newtn ", {"DYAD_SOLVER", "did you mean newton?"});
  expect_error("train", "DYAD_CONFIG=" + path("none.toml") + " ", {"none.toml", "No such file"});
  expect_error("train --config " + path(""), "", {"cannot be read"});
  expect_error(config("\nrank = x\n"), "", {"dyad.toml, line 2: rank: ", "whole number"});
  expect_error(config("rnak = 3\n"), "", {"dyad.toml, line 1: 'rnak'", "any verb", "did you mean rank?"});
  expect_error(config("RANK = 3\n"), "", {"'RANK'", "did you mean rank?"});
  expect_error(config("[train]\nnoise = 3\n"), "", {"line 2: 'noise' is not a setting of train"});
  expect_error(config("[trian]\nrank = 3\n"), "", {"[trian]", "did you mean train?"});
  expect_error(config("[recover]\nnosie = 3\n"), "", {"line 2", "did you mean noise?"});
  for (const char* name : {"config", "help", "version", "print-config", "DATA"})
    expect_error(config(std::string(name) + " = 1\n"), "", {std::string("'") + name + "' is not a setting"});
  for (const char* text : {"rank\n", "= 3\n", "rank =\n", "rank = # 3\n", "rank = \"3\n", "rank = [3\n",
                           "rank = [3 4]\n", "rank = 3 4\n", "[train\n", "[train] x\n", "rank = 3\nrank = 4\n",
                           "\x7f"
                           "ELF\n"})
    expect_error(config(text), "", {"dyad.toml, line "});
}

TEST_F(Settings, WhatIsRefusedLaterIsNamedWithItsPlace) {
  const std::string rows = write("rows.csv", houses(100, 1));
  const std::string train = "train " + rows + " --quiet --target price -m " + path("m.dyad") + " ";
  const std::string config = "--config " + write("dyad.toml", "rank = 0\nseed = 2\n");
  expect_error(train + config, "", {"rank must lie in", " (rank comes from " + path("dyad.toml, line 1") + ")\n"});
  expect_error(train, "DYAD_HASH_BITS=40 DYAD_SEED=2 ", {" (hash-bits comes from DYAD_HASH_BITS)\n"});
  expect_error(train, "DYAD_CHECKPOINT_EVERY=-1 ", {" (checkpoint-every comes from DYAD_CHECKPOINT_EVERY)\n"});
  expect_error(train + "--rank 0", "", {"got 0\n"});
  ASSERT_EQ(run_dyad(train).exit_code, 0);
  expect_error("train " + rows + " --resume -m " + path("m.dyad"), "DYAD_RANK=4 ",
               {"--rank does not agree", " (rank comes from DYAD_RANK)\n"});
}

TEST_F(Settings, FlagsAreTheSameWordsEverywhere) {
  for (const char* word : {"2", "x", "maybe"}) {
    const std::string message = std::string("expected true or false, got '") + word + "'";
    expect_error(std::string("train --quiet=") + word, "", {"--quiet: " + message});
    expect_error(std::string("train --print-config --quiet=") + word, "", {"--quiet: " + message});
    expect_error("train", std::string("DYAD_QUIET=") + word + " ", {"DYAD_QUIET: " + message});
  }
  EXPECT_EQ(line("quiet", "train --quiet=YES"), "quiet = true  # flag");
  EXPECT_EQ(line("quiet", "train --quiet=off"), "quiet = false  # flag");
}

TEST_F(Settings, AByteOrderMarkIsNoName) {
  const std::string config = "--config " + write("dyad.toml", "\xEF\xBB\xBFrank = 3\n");
  EXPECT_TRUE(line("rank", "train " + config).starts_with("rank = 3 "));
}

TEST_F(Settings, OtherVariablesAreNone) {
  const Result result = run_dyad("train --print-config", "DYAD_DATA=/x DYAD_NONE=1 DYAD_HELP=1 DYAD_VERSION=1 ");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run_dyad("train --print-config").out);
}

TEST_F(Settings, WhatIsRequiredMayComeFromThem) {
  EXPECT_EQ(run_dyad("recover gfm --quiet --dim 5 --rank 1").exit_code, 0);
  EXPECT_EQ(run_dyad("recover gfm", "DYAD_QUIET=1 DYAD_DIM=5 DYAD_RANK=1 ").exit_code, 0);
  expect_error("recover gfm", "", {"--dim is required", "dyad recover --help"});
}

TEST(Suggestions, ForWhatIsNearlyRight) {
  const std::pair<const char*, const char*> cases[] = {
      {"train --rnk 3", "dyad: --rnk is not an option of train; did you mean --rank?\n"},
      {"train --rank=3 --sede=4", "dyad: --sede is not an option of train; did you mean --seed?\n"},
      {"train --tar y", "did you mean --target?\n"},
      {"train -rank 3", "dyad: -rank is not an option of train; did you mean --rank?\n"},
      {"train --xyzzy", "dyad: --xyzzy is not an option of train; see dyad train --help\n"},
      {"trian rows.csv", "dyad: 'trian' is not a verb; did you mean train?\n"},
      {"xyzzy", "the verbs are train, predict"},
      {"", "a verb is required"},
      {"--rank 3", "--rank is not an option of dyad"},
      {"recover gfn", "KIND: 'gfn' is not one of gfm, sensing, phase, bilinear; did you mean gfm?"},
      {"recover gfm --dim 3 --solver klaman", "did you mean kalman?"},
      {"train --rank= --print-config", "dyad: --rank= has no value behind the ="},
      {"train --rank 3 --rank 4", "dyad: --rank is given twice\n"},
      {"train -m a --model b", "dyad: --model is given twice\n"},
      {"recover gfm --dim 10x", "--dim: expected a whole number or D1xD2, got '10x'"},
      {"inspect one two", "'two' is one argument too many for inspect"},
  };
  for (const auto& [arguments, message] : cases) {
    const Result result = run_dyad(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
  }
}

TEST(ParseCommand, MayBeCalledAgainAndAgain) {
  const auto is_wrong = [](const std::vector<std::string>& arguments) {
    EXPECT_THROW(static_cast<void>(cli::parse_command(arguments)), std::invalid_argument);
  };
  for (int i = 0; i < 3; ++i) {
    is_wrong({});
    is_wrong({"train"});
    is_wrong({"train", "rows.csv", "-m", "m.dyad", "--rank", "x"});
    is_wrong({"train", "--", "--rank"});
    EXPECT_TRUE(cli::parse_command({"train", "rows.csv", "-m", "m.dyad"}));
    EXPECT_TRUE(cli::parse_command({"recover", "--help"}));
    EXPECT_TRUE(cli::parse_command({"--version"}));
  }
}

}  // namespace
}  // namespace dyad::test
