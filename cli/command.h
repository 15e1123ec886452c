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

#include "suggestion.h"
#include "terminal.h"

namespace dyad::cli {

/// What a verb does once its options are read; returns the exit code.
using Action = std::function<int()>;

template <typename Target>
struct Unwrapped {
  using type = Target;
};
template <typename Target>
struct Unwrapped<std::optional<Target>> {
  using type = Target;
};

/// The flags that every verb has.
struct Output {
  bool json = false;
  bool quiet = false;

  void add_to(CLI::App& verb) {
    verb.add_flag("--json", json, "Print one JSON object on standard output at the end and nothing else there");
    verb.add_flag("--quiet", quiet, "No progress or messages on standard error");
  }
};

/// The verb's options, each with an error that says what is allowed.
template <typename Choice>
using Choices = std::vector<std::pair<std::string, Choice>>;

template <typename Choice>
CLI::Option* add_choice(CLI::App& verb, const std::string& name, Choice& choice, const Choices<Choice>& choices,
                        const std::string& description) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  const std::string allowed = fmt::format("{}", fmt::join(words, ", "));
  const auto read = [&choice, choices, allowed, words, name](const std::string& given) {
    for (const auto& [word, value] : choices)
      if (word == given) {
        choice = value;
        return;
      }
    throw CLI::ValidationError(name,
                               fmt::format("'{}' is not one of {}{}", given, allowed, did_you_mean(given, words)));
  };
  return verb.add_option_function<std::string>(name, read, description)
      ->type_name(fmt::format("{}", fmt::join(words, "|")));
}

template <typename Choice>
std::string word_for(const Choices<Choice>& choices, Choice choice) {
  return std::find_if(choices.begin(), choices.end(), [&](const auto& pair) { return pair.second == choice; })->first;
}

/// All of the text as one number, or nothing.
template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

template <typename Target>
CLI::Option* add_number(CLI::App& verb, const std::string& name, Target& target, const std::string& unit,
                        const std::string& description) {
  using Number = typename Unwrapped<Target>::type;
  const auto read = [](const std::string& given) {
    if (parse_number<Number>(given)) return std::string();
    return fmt::format("expected {}, got '{}'", std::is_floating_point_v<Number> ? "a number" : "a whole number",
                       given);
  };
  return verb.add_option(name, target, description)->type_name(unit)->check(read, "");
}

template <typename... Values>
void print_message(fmt::format_string<Values...> format, Values&&... values) {
  write_message(escape_unprintable(fmt::format(format, std::forward<Values>(values)...), "\n"));
}

/// A message behind a coloured mark: "dyad: ..."
inline void print_marked(Style style, std::string_view mark, const std::string& message) {
  write_message(styled(style, mark));
  print_message(" {}\n", message);
}

/// The heading of a table.
template <typename... Values>
void print_heading(fmt::format_string<Values...> format, Values&&... values) {
  write_message(styled(Style::bold, escape_unprintable(fmt::format(format, std::forward<Values>(values)...), "\n")));
}

/// Writes a line of data to standard output, or throws.
void print_result(const std::string& text);

/// True once the user has pressed Ctrl-C or the process was asked to end.
bool interrupted_by_user();
/// For verbs that ask for that; others end at once.
void watch_for_interrupts();
/// A write beyond the limit on file size fails, and that is told.
void survive_size_limits();
/// For verbs whose work lasts: a reader of messages that went away stops nothing.
void work_on_without_readers();

void add_recover(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_evaluate(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace dyad::cli
