#pragma once

namespace dyad::cli {

/// What scripts may rely on.
enum ExitCode : int {
  done = 0,
  failed = 1,  ///< while running: a full disk, a tolerance that was not reached
  wrong_usage = 2,
  bad_data = 3,  ///< or an unreadable model
  interrupted = 130,
};

}  // namespace dyad::cli
