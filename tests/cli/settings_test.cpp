#include <commands.h>

#include <stdexcept>

#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

/// Options from the config file, the environment and the command line, in increasing order of precedence.
class Settings : public CommandTest {
 protected:
  /// Line of --print-config for this option.
  [[nodiscard]] static std::string line(const std::string& name, const std::string& arguments,
                                        const std::string& prefix = "") {
    const Result result = run_dyad(arguments + " --print-config", prefix);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(result.out);
    for (std::string text; std::getline(lines, text);)
      if (text.starts_with(name + " = ") || text.starts_with("# " + name + " = ")) return text;
    return "";
  }

  static void expect_error(const std::string& arguments, const std::string& prefix,
                           const std::vector<std::string>& in_message) {
    const Result result = run_dyad(arguments, prefix);
    EXPECT_EQ(result.exit_code, 2) << prefix << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "");
    for (const std::string& substring : in_message)
      EXPECT_TRUE(contains(result.err, substring)) << substring << "\n" << result.err;
  }
};

TEST_F(Settings, FlagOverridesEnvironmentOverridesConfig) {
  const std::string config = "--config " + write("dyad.toml", "rank = 3\n");
  EXPECT_TRUE(line("rank", "train").starts_with("# rank = K  # "));
  EXPECT_EQ(line("rank", "train " + config), "rank = 3  # config " + path("dyad.toml") + ", line 1");
  EXPECT_EQ(line("rank", "train " + config, "DYAD_RANK=4 "), "rank = 4  # environment DYAD_RANK");
  EXPECT_EQ(line("rank", "train --rank 5 " + config, "DYAD_RANK=4 "), "rank = 5  # flag");
  EXPECT_EQ(line("rank", "train " + config, "DYAD_RANK= "), line("rank", "train " + config))
      << "an empty variable is ignored";
  EXPECT_EQ(line("rank", "train", "DYAD_CONFIG=" + path("dyad.toml") + " "), line("rank", "train " + config));
}

TEST_F(Settings, SettingsActLikeOptions) {
  const std::string rows = write("rows.csv", houses(300, 1));
  const std::string config = write("dyad.toml", "target = price\nquiet = yes\nmodel = '" + path("m.dyad") +
                                                    "'\n[train]\nrank = 3\nsolver = 'newton'\n");
  const Result trained = run_dyad("train " + rows + " --config " + config);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err, "");
  EXPECT_EQ(run_json("inspect " + path("m.dyad"))["rank"], 3);
  EXPECT_EQ(run_dyad("evaluate " + rows, "DYAD_CONFIG=" + config + " ").exit_code, 0);
}

TEST_F(Settings, SectionOverridesTopLevel) {
  const std::string config =
      "--config " + write("dyad.toml", "seed = 1\nrank = 3\n\n[train]\nrank = 4\n[recover]\nrank=5\n");
  EXPECT_TRUE(line("rank", "train " + config).starts_with("rank = 4 "));
  EXPECT_TRUE(line("rank", "recover " + config).starts_with("rank = 5 "));
  EXPECT_TRUE(line("rank", "simulate " + config).starts_with("rank = 3 "));
  EXPECT_EQ(run_dyad("inspect --print-config " + config).exit_code, 0) << "inspect has no rank, other subcommands have";
}

TEST_F(Settings, ListsAreReplacedAndFlagsAreBoolean) {
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

TEST_F(Settings, PrintedConfigRoundTrips) {
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
  for (const char* subcommand : {"train", "predict", "evaluate", "inspect", "recover", "simulate"}) {
    const Result plain = run_dyad(std::string(subcommand) + " --print-config");
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_EQ(
        run_dyad(std::string(subcommand) + " --print-config --config " + write("plain.toml", plain.out)).exit_code, 0);
  }
}

TEST_F(Settings, ErrorsNameVariableOrLine) {
  const auto config = [&](const std::string& text) { return "train --config " + write("dyad.toml", text); };
  expect_error("train", "DYAD_RANK=x ", {"DYAD_RANK", "'x'"});
  expect_error("train", "DYAD_RESUME=maybe ", {"DYAD_RESUME", "'maybe'"});
  expect_error("train", "DYAD_SOLVER=newtn ", {"DYAD_SOLVER", "newton?"});
  expect_error("train", "DYAD_CONFIG=" + path("none.toml") + " ", {"none.toml", "No such file"});
  expect_error("train --config " + path(""), "", {path("")});
  expect_error(config("\nrank = x\n"), "", {"dyad.toml, line 2: rank: ", "'x'"});
  expect_error(config("rnak = 3\n"), "", {"dyad.toml, line 1: ", "'rnak'", "rank?"});
  expect_error(config("RANK = 3\n"), "", {"'RANK'", "rank?"});
  expect_error(config("[train]\nnoise = 3\n"), "", {"line 2", "'noise'", "train"});
  expect_error(config("[trian]\nrank = 3\n"), "", {"[trian]", "train?"});
  expect_error(config("[recover]\nnosie = 3\n"), "", {"line 2", "noise?"});
  for (const char* name : {"config", "help", "version", "print-config", "DATA"})
    expect_error(config(std::string(name) + " = 1\n"), "", {"dyad.toml, line 1", std::string("'") + name + "'"});
  for (const char* text : {"rank\n", "= 3\n", "rank =\n", "rank = # 3\n", "rank = \"3\n", "rank = [3\n",
                           "rank = [3 4]\n", "rank = 3 4\n", "[train\n", "[train] x\n", "rank = 3\nrank = 4\n",
                           "\x7f"
                           "ELF\n"})
    expect_error(config(text), "", {"dyad.toml, line "});
}

TEST_F(Settings, ErrorsOfTheLibraryNameTheOrigin) {
  const std::string rows = write("rows.csv", houses(100, 1));
  const std::string train = "train " + rows + " --quiet --target price -m " + path("m.dyad") + " ";
  const std::string config = "--config " + write("dyad.toml", "rank = 0\nseed = 2\n");
  expect_error(train + config, "", {"--rank", " (rank comes from " + path("dyad.toml, line 1") + ")\n"});
  expect_error(train, "DYAD_HASH_BITS=40 DYAD_SEED=2 ", {" (hash-bits comes from DYAD_HASH_BITS)\n"});
  expect_error(train, "DYAD_CHECKPOINT_EVERY=-1 ", {" (checkpoint-every comes from DYAD_CHECKPOINT_EVERY)\n"});
  expect_error(train + "--rank 0", "", {"--rank"});
  ASSERT_EQ(run_dyad(train).exit_code, 0);
  expect_error("train " + rows + " --resume -m " + path("m.dyad"), "DYAD_RANK=4 ",
               {"--rank", " (rank comes from DYAD_RANK)\n"});
}

TEST_F(Settings, FlagValuesOfEveryOriginAreChecked) {
  for (const char* text : {"2", "x", "maybe"}) {
    const std::string value = std::string("'") + text + "'";
    expect_error(std::string("train --quiet=") + text, "", {"--quiet: ", value});
    expect_error(std::string("train --print-config --quiet=") + text, "", {"--quiet: ", value});
    expect_error("train", std::string("DYAD_QUIET=") + text + " ", {"DYAD_QUIET: ", value});
  }
  EXPECT_EQ(line("quiet", "train --quiet=YES"), "quiet = true  # flag");
  EXPECT_EQ(line("quiet", "train --quiet=off"), "quiet = false  # flag");
}

TEST_F(Settings, ByteOrderMarkIsSkipped) {
  const std::string config = "--config " + write("dyad.toml", "\xEF\xBB\xBFrank = 3\n");
  EXPECT_TRUE(line("rank", "train " + config).starts_with("rank = 3 "));
}

TEST_F(Settings, OtherVariablesAreIgnored) {
  const Result result = run_dyad("train --print-config", "DYAD_DATA=/x DYAD_NONE=1 DYAD_HELP=1 DYAD_VERSION=1 ");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run_dyad("train --print-config").out);
}

TEST_F(Settings, RequiredOptionsMayComeFromTheEnvironment) {
  EXPECT_EQ(run_dyad("recover gfm --quiet --dim 5 --rank 1").exit_code, 0);
  EXPECT_EQ(run_dyad("recover gfm", "DYAD_QUIET=1 DYAD_DIM=5 DYAD_RANK=1 ").exit_code, 0);
  expect_error("recover gfm", "", {"--dim", "dyad recover --help"});
}

TEST(Suggestions, NameTheClosestMatch) {
  const std::pair<const char*, const char*> cases[] = {
      {"train --rnk 3", "--rank?\n"},
      {"train --rank=3 --sede=4", "--seed?\n"},
      {"train --tar y", "--target?\n"},
      {"train -rank 3", "--rank?\n"},
      {"train --xyzzy", "dyad train --help"},
      {"trian rows.csv", "train?\n"},
      {"xyzzy", "train, predict"},
      {"", "train, predict"},
      {"--rank 3", "--rank"},
      {"recover gfn", "gfm?"},
      {"recover gfm --dim 3 --solver klaman", "kalman?"},
      {"train --rank= --print-config", "--rank="},
      {"train --rank 3 --rank 4", "--rank"},
      {"train -m a --model b", "--model"},
      {"recover gfm --dim 10x", "--dim: "},
      {"inspect one two", "'two'"},
  };
  for (const auto& [arguments, message] : cases) {
    const Result result = run_dyad(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
  }
}

TEST(ParseCommand, CanBeCalledRepeatedly) {
  const auto expect_invalid = [](const std::vector<std::string>& arguments) {
    EXPECT_THROW(static_cast<void>(cli::parse_command(arguments)), std::invalid_argument);
  };
  for (int i = 0; i < 3; ++i) {
    expect_invalid({});
    expect_invalid({"train"});
    expect_invalid({"train", "rows.csv", "-m", "m.dyad", "--rank", "x"});
    expect_invalid({"train", "--", "--rank"});
    EXPECT_TRUE(cli::parse_command({"train", "rows.csv", "-m", "m.dyad"}));
    EXPECT_TRUE(cli::parse_command({"recover", "--help"}));
    EXPECT_TRUE(cli::parse_command({"--version"}));
  }
}

}  // namespace
}  // namespace dyad::test
