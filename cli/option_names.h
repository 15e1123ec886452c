#pragma once

#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace dyad::cli {

/// Correspondence of a field of the library's option structs (`TrainOptions::half_life`) to a command-line argument
/// (`--forget`, or `DATA` for a positional).
struct FieldOption {
  std::string_view field;   ///< name without the names of enclosing structs
  std::string_view option;  ///< name in messages
};

/// All fields that the command line sets. A field that has different names in different subcommands has several
/// entries.
std::span<const FieldOption> field_options();

/// Replaces field names in a message of the library by the names of the arguments that set them. Replaced are names
/// with an underscore (`hash_bits`), qualified names (`columns.right`, `TrainOptions::rank`), names in backquotes, and
/// a field that is the subject of the message ("rank must be ..."). Quoted text and paths are not changed.
/// `subcommand`: selects among several entries of a field; null: the first entry.
std::string with_option_names(std::string_view message, const CLI::App* subcommand = nullptr);

}  // namespace dyad::cli
