#include <algorithm>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/made_data.h"

namespace dyad::test {
namespace {

using Words = std::set<std::string>;

const std::vector<std::string> verbs{"train",   "predict",  "evaluate", "inspect",
                                     "recover", "simulate", "man",      "completion"};

/// What --help shows to the left: -m, --model.
Words options_in_help(const std::string& verb) {
  const std::string help = run_dyad(verb + " --help").out;
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

/// What bash offers where the last of these words is being typed.
Words completed(const std::string& words) {
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

TEST(Manual, HasEveryOptionOfEveryVerb) {
  std::string page = run_dyad("man").out;
  for (const char* section :
       {"NAME", "SYNOPSIS", "DESCRIPTION", "VERBS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES"})
    EXPECT_NE(page.find(std::string("\n.SH ") + section + "\n"), std::string::npos) << section;
  for (const std::string& verb : verbs) {
    const std::size_t start = page.find("\n.SS dyad " + verb + "\n");
    ASSERT_NE(start, std::string::npos) << verb;
    const std::string section =
        std::regex_replace(page.substr(start, page.find("\n.S", start + 1) - start), std::regex(R"(\\-)"), "-");
    for (const std::string& option : options_in_help(verb))
      EXPECT_NE(section.find("\\fB" + option + "\\fR"), std::string::npos) << verb << " " << option;
  }
}

TEST(Manual, IsCleanRoff) {
  if (run_shell("command -v groff >/dev/null").exit_code != 0) GTEST_SKIP() << "there is no groff here";
  const Result result = run_dyad("man | groff -man -ww -Tutf8 -P-cbou");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("EXIT STATUS"), std::string::npos);
}

TEST(Completion, OffersVerbsOptionsAndChoices) {
  const Words first = completed("dyad \"\"");
  for (const std::string& verb : verbs) {
    EXPECT_TRUE(first.contains(verb)) << verb;
    EXPECT_EQ(completed("dyad " + verb + " -"), options_in_help(verb)) << verb;
  }
  EXPECT_EQ(completed("dyad pr"), Words{"predict"});
  EXPECT_EQ(completed("dyad train --check"), Words{"--checkpoint-every"});
  EXPECT_EQ(completed("dyad train --kind \"\""), (Words{"gfm", "sensing", "phase", "bilinear"}));
  EXPECT_EQ(completed("dyad train rows.csv --solver k"), Words{"kalman"});
  EXPECT_EQ(completed("dyad train --solver = k"), Words{"kalman"});
  EXPECT_EQ(completed("dyad train --diagonal ="), (Words{"auto", "tied", "zero", "free"}));
  EXPECT_EQ(completed("dyad recover \"\""), (Words{"gfm", "sensing", "phase", "bilinear"}));
  EXPECT_EQ(completed("dyad recover --quiet --dim 3 \"\""), (Words{"gfm", "sensing", "phase", "bilinear"}));
  EXPECT_EQ(completed("dyad recover gfm \"\""), Words{});
  EXPECT_EQ(completed("dyad completion \"\""), (Words{"bash", "zsh"}));
}

TEST(Completion, LeavesFileNamesToBash) {
  EXPECT_EQ(completed("dyad train --model \"\""), Words{});
  EXPECT_EQ(completed("dyad train ho"), Words{});
  EXPECT_EQ(completed("dyad train -m -"), Words{});
  const Result result =
      run_shell(std::string("bash -c 'source <(") + DYAD_COMMAND + " completion bash); complete -p dyad'");
  EXPECT_EQ(result.out, "complete -o default -F _dyad dyad\n");
}

TEST(Completion, ForZshHasEveryOptionOfEveryVerb) {
  const std::string script = run_dyad("completion zsh").out;
  EXPECT_TRUE(script.starts_with("#compdef dyad\n"));
  for (const std::string& verb : verbs) {
    const std::size_t start = script.find("\n    " + verb + ")\n");
    ASSERT_NE(start, std::string::npos) << verb;
    const std::string section = script.substr(start, script.find(";;", start) - start);
    for (const std::string& option : options_in_help(verb))
      EXPECT_TRUE(section.find("'" + option + "[") != std::string::npos ||
                  section.find("'" + option + "=[") != std::string::npos)
          << verb << " " << option;
  }
  for (const char* part : {":MODEL:_files'", ":FILE...:_files'", ":K: '", ":COLS: '", ":SIZE: '"})
    EXPECT_NE(script.find(part), std::string::npos) << part;
  const bool has_zsh = run_shell("command -v zsh >/dev/null").exit_code == 0;
  EXPECT_EQ(has_zsh ? run_dyad("completion zsh | zsh -n /dev/stdin").exit_code : 0, 0);
}

}  // namespace
}  // namespace dyad::test
