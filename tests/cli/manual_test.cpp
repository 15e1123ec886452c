#include <algorithm>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

using Words = std::set<std::string>;

const std::vector<std::string> subcommands{"train",   "predict",  "evaluate", "inspect",
                                           "recover", "simulate", "man",      "completion"};

/// Names of the options in the help text: -m, --model.
Words options_in_help(const std::string& subcommand) {
  const std::string help = run_dyad(subcommand + " --help").out;
  const std::regex spelling("(?:^|\n)  (-[a-z],)?(--[a-z-]+)");
  Words options;
  for (auto found = std::sregex_iterator(help.begin(), help.end(), spelling); found != std::sregex_iterator();
       ++found) {
    if ((*found)[1].matched) options.insert((*found)[1].str().substr(0, 2));
    options.insert((*found)[2].str());
  }
  EXPECT_GE(options.size(), 3U) << help;
  return options;
}

/// Completions of bash for the last of these words.
Words completions(const std::string& words) {
  const Result result =
      run_shell(std::string("bash -c 'source <(") + DYAD_COMMAND + " completion bash); COMP_WORDS=(" + words +
                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _dyad; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "") << words;
  std::istringstream lines(result.out);
  Words offered;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) offered.insert(line);
  return offered;
}

TEST(Manual, HasEveryOptionOfEverySubcommand) {
  std::string page = run_dyad("man").out;
  for (const char* section :
       {"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES"})
    EXPECT_NE(page.find(std::string("\n.SH ") + section + "\n"), std::string::npos) << section;
  for (const std::string& subcommand : subcommands) {
    const std::size_t start = page.find("\n.SS dyad " + subcommand + "\n");
    ASSERT_NE(start, std::string::npos) << subcommand;
    const std::string section =
        std::regex_replace(page.substr(start, page.find("\n.S", start + 1) - start), std::regex(R"(\\-)"), "-");
    for (const std::string& option : options_in_help(subcommand))
      EXPECT_NE(section.find("\\fB" + option + "\\fR"), std::string::npos) << subcommand << " " << option;
  }
}

TEST(Manual, IsValidRoff) {
  if (run_shell("command -v groff >/dev/null").exit_code != 0) GTEST_SKIP() << "groff is not installed";
  const Result result = run_dyad("man | groff -man -ww -Tutf8 -P-cbou");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("EXIT STATUS"), std::string::npos);
}

TEST(Completion, OffersSubcommandsOptionsAndChoices) {
  const Words first = completions("dyad \"\"");
  for (const std::string& subcommand : subcommands) {
    EXPECT_TRUE(first.contains(subcommand)) << subcommand;
    EXPECT_EQ(completions("dyad " + subcommand + " -"), options_in_help(subcommand)) << subcommand;
  }
  EXPECT_EQ(completions("dyad pr"), Words{"predict"});
  EXPECT_EQ(completions("dyad train --check"), Words{"--checkpoint-every"});
  EXPECT_EQ(completions("dyad train --kind \"\""), (Words{"gfm", "sensing", "phase", "bilinear"}));
  EXPECT_EQ(completions("dyad train rows.csv --solver k"), Words{"kalman"});
  EXPECT_EQ(completions("dyad train --solver = k"), Words{"kalman"});
  EXPECT_EQ(completions("dyad train --diagonal ="), (Words{"auto", "tied", "zero", "free"}));
  EXPECT_EQ(completions("dyad recover \"\""), (Words{"gfm", "sensing", "phase", "bilinear"}));
  EXPECT_EQ(completions("dyad recover --quiet --dim 3 \"\""), (Words{"gfm", "sensing", "phase", "bilinear"}));
  EXPECT_EQ(completions("dyad recover gfm \"\""), Words{});
  EXPECT_EQ(completions("dyad completion \"\""), (Words{"bash", "zsh"}));
}

TEST(Completion, OffersNoCandidatesForFileNames) {
  EXPECT_EQ(completions("dyad train --model \"\""), Words{});
  EXPECT_EQ(completions("dyad train ho"), Words{});
  EXPECT_EQ(completions("dyad train -m -"), Words{});
  const Result result =
      run_shell(std::string("bash -c 'source <(") + DYAD_COMMAND + " completion bash); complete -p dyad'");
  EXPECT_EQ(result.out, "complete -o default -F _dyad dyad\n");
}

TEST(Completion, ZshHasEveryOptionOfEverySubcommand) {
  const std::string script = run_dyad("completion zsh").out;
  EXPECT_TRUE(script.starts_with("#compdef dyad\n"));
  for (const std::string& subcommand : subcommands) {
    const std::size_t start = script.find("\n    " + subcommand + ")\n");
    ASSERT_NE(start, std::string::npos) << subcommand;
    const std::string section = script.substr(start, script.find(";;", start) - start);
    for (const std::string& option : options_in_help(subcommand))
      EXPECT_TRUE(section.find("'" + option + "[") != std::string::npos ||
                  section.find("'" + option + "=[") != std::string::npos)
          << subcommand << " " << option;
  }
  for (const char* completion : {":MODEL:_files'", ":FILE...:_files'", ":K: '", ":COLS: '", ":SIZE: '"})
    EXPECT_TRUE(contains(script, completion)) << completion;
  const bool has_zsh = run_shell("command -v zsh >/dev/null").exit_code == 0;
  EXPECT_EQ(has_zsh ? run_dyad("completion zsh | zsh -n /dev/stdin").exit_code : 0, 0);
}

}  // namespace
}  // namespace dyad::test
