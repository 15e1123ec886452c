#pragma once

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <dyad/text.h>

#include "option_names.h"
#include "suggestion.h"
#include "terminal.h"

/// \file
/// Helpers of the subcommands: options with checked values, messages, signals, and the functions that register them.

namespace dyad::cli {

/// Runs a subcommand whose options have been parsed and returns the exit code.
using Action = std::function<int()>;

/// Value type of an option: `Value`, or the content of a std::optional.
template <typename Value>
struct ValueType {
  using type = Value;
};
template <typename Value>
struct ValueType<std::optional<Value>> {
  using type = Value;
};

/// Output flags of all subcommands that process data.
struct OutputFlags {
  bool json = false;   ///< one JSON object on standard output
  bool quiet = false;  ///< no progress and no messages on standard error

  void add_to(CLI::App& subcommand) {
    subcommand.add_flag("--json", json, "Print one JSON object, and nothing else, on standard output");
    subcommand.add_flag("--quiet", quiet, "Suppress progress and messages on standard error");
  }
};

/// Names of the values of an enumeration, in the order of the help text.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// Adds an option whose value is one of `choices`. The error for any other value lists them.
template <typename Value>
CLI::Option* add_choice(CLI::App& subcommand, const std::string& name, Value& variable, const Choices<Value>& choices,
                        const std::string& description) {
  std::vector<std::string> allowed;
  for (const auto& [choice, value] : choices) allowed.push_back(choice);
  const auto parse = [&variable, choices, allowed, name](const std::string& text) {
    for (const auto& [choice, value] : choices)
      if (choice == text) {
        variable = value;
        return;
      }
    throw CLI::ValidationError(name, fmt::format("expected one of {}, got '{}'{}", fmt::join(allowed, ", "), text,
                                                 did_you_mean(text, allowed)));
  };
  return subcommand.add_option_function<std::string>(name, parse, description)
      ->type_name(fmt::format("{}", fmt::join(allowed, "|")));
}

/// Returns the name of a value, which must be one of `choices`.
template <typename Value>
std::string choice_name(const Choices<Value>& choices, Value value) {
  return std::find_if(choices.begin(), choices.end(), [&](const auto& pair) { return pair.second == value; })->first;
}

/// Parses the complete text as one number.
template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Adds an option with an integer or real value. `placeholder` stands for the value in the help text.
template <typename Value>
CLI::Option* add_number(CLI::App& subcommand, const std::string& name, Value& variable, const std::string& placeholder,
                        const std::string& description) {
  using Number = typename ValueType<Value>::type;
  const auto check = [](const std::string& text) {
    if (parse_number<Number>(text)) return std::string();
    return fmt::format("expected {}, got '{}'", std::is_floating_point_v<Number> ? "a number" : "an integer", text);
  };
  return subcommand.add_option(name, variable, description)->type_name(placeholder)->check(check, "");
}

/// Prints to standard error. Unprintable characters except newlines are escaped.
template <typename... Values>
void print_message(fmt::format_string<Values...> format, Values&&... values) {
  write_message(escape_unprintable(fmt::format(format, std::forward<Values>(values)...), "\n"));
}

/// Prints a line with a styled label: "dyad: ..." or "warning: ...".
inline void print_labeled(Style style, std::string_view label, const std::string& message) {
  write_message(styled(style, label));
  print_message(" {}\n", message);
}

inline void print_warning(const std::string& message) { print_labeled(Style::yellow, "warning:", message); }

/// Prints the column names of a table in bold.
template <typename... Values>
void print_heading(fmt::format_string<Values...> format, Values&&... values) {
  write_message(styled(Style::bold, escape_unprintable(fmt::format(format, std::forward<Values>(values)...), "\n")));
}

/// Writes `text` and a newline to standard output.
/// \throws std::runtime_error if it cannot be written
void print_result(const std::string& text);

/// True after SIGINT or SIGTERM, once install_interrupt_handlers() was called.
bool is_interrupted();
/// Makes SIGINT and SIGTERM set is_interrupted() instead of ending the process.
void install_interrupt_handlers();
/// Ignores SIGXFSZ, so that a write beyond the file size limit returns an error, which is reported.
void ignore_file_size_signal();
/// Ignores SIGPIPE, so that training continues after the reader of its messages has exited.
void ignore_broken_pipe_signal();

void add_recover(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_evaluate(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace dyad::cli
