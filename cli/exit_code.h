#pragma once

namespace dyad::cli {

/// Exit codes of all subcommands. Scripts depend on the values.
enum ExitCode : int {
  success = 0,
  runtime_failure = 1,  ///< such as a full disk, or a tolerance that was not reached
  usage_error = 2,      ///< such as an unknown option or a column that does not exist
  data_error = 3,       ///< invalid data or an invalid model file
  interrupted = 130,    ///< 128 + SIGINT, also after SIGTERM
};

}  // namespace dyad::cli
