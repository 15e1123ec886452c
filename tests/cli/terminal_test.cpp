#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

constexpr const char* erase_line = "\r\x1b[K";

/// Output of `dyad ARGUMENTS` on a terminal.
std::string on_terminal(const std::string& arguments, const std::string& variables = "") {
  return run_shell("env -u NO_COLOR TERM=xterm " + variables + " script -qec \"" + DYAD_COMMAND + " " + arguments +
                   "\" /dev/null")
      .out;
}

class Terminal : public TemporaryFolderTest {
 protected:
  [[nodiscard]] std::string train(const std::string& more = "") const {
    return "train " + write("rows.csv", houses(9000, 1)) + " --target price -m " + path("m.dyad") + " " + more;
  }
};

TEST_F(Terminal, ErrorsAreRedOnATerminalOnly) {
  EXPECT_TRUE(contains(on_terminal("trian"), "\x1b[31mdyad:\x1b[0m "));
  EXPECT_TRUE(contains(on_terminal("trian", "NO_COLOR="), "\x1b[31m")) << "an empty variable is ignored";
  for (const char* variables : {"NO_COLOR=1", "TERM=dumb"}) {
    const std::string plain = on_terminal("trian", variables);
    EXPECT_FALSE(contains(plain, "\x1b")) << variables;
    EXPECT_TRUE(contains(plain, "dyad: ")) << plain;
  }
  EXPECT_FALSE(contains(run_dyad("trian").err, "\x1b"));
}

TEST_F(Terminal, TrainingHasAStatusLineOnATerminalOnly) {
  const std::string shown = on_terminal(train());
  EXPECT_TRUE(contains(shown, std::string(erase_line) + "        4096 rows, rmse ")) << shown;
  EXPECT_TRUE(contains(shown, std::string(" rows/s") + erase_line)) << "erased before the next line: " << shown;
  EXPECT_FALSE(contains(on_terminal(train("--quiet")), "\x1b"));
  EXPECT_FALSE(contains(on_terminal(train(), "TERM=dumb"), "\x1b"));
  EXPECT_FALSE(contains(run_dyad(train()).err, "\x1b"));
  const std::string plain = on_terminal(train(), "NO_COLOR=1");
  EXPECT_TRUE(contains(plain, erase_line));
  EXPECT_FALSE(contains(plain, "\x1b[1m"));
}

}  // namespace
}  // namespace dyad::test
