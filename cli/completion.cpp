#include <memory>

#include "command.h"
#include "exit_code.h"
#include "option_table.h"

namespace dyad::cli {
namespace {

enum class Shell { bash, zsh };
const Choices<Shell> shells{{"bash", Shell::bash}, {"zsh", Shell::zsh}};

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> all_spellings(const CLI::App& verb) {
  std::vector<std::string> all;
  for (const CLI::Option* option : options_of(verb))
    for (const std::string& name : spellings_of(*option)) all.push_back(name);
  return all;
}

/// The cases of one verb: what follows an option, options, what comes once.
std::string bash_cases(const CLI::App& verb) {
  std::string text;
  for (const CLI::Option* option : options_of(verb)) {
    if (!takes_value(*option)) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : spellings_of(*option)) patterns.push_back(verb.get_name() + ":" + name + ":*");
    text += fmt::format("    {}) words='{}' ;;\n", joined(patterns, "|"), joined(choices_of(*option)));
  }
  text += fmt::format("    {}:*:-*) words='{}' ;;\n", verb.get_name(), joined(all_spellings(verb)));
  for (const CLI::Option* option : positionals_of(verb))
    if (const auto choices = choices_of(*option); !choices.empty())
      text += fmt::format("    {}:*) [[ $before =~ \\ ({})\\  ]] || words='{}' ;;\n", verb.get_name(),
                          joined(choices, "|"), joined(choices));
  return text;
}

/// Where there are no words to offer, bash completes file names (-o default).
std::string bash_completion(const CLI::App& app) {
  std::string text = R"(# bash completion for dyad, made by `dyad completion bash`
_dyad() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=
  # --kind=g arrives as the three words --kind, = and g.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  local before=" ${COMP_WORDS[*]:2:COMP_CWORD-2} "
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
)";
  text += fmt::format("    COMPREPLY=($(compgen -W '{} {}' -- \"$current\"))\n    return\n  fi\n",
                      joined(verb_names(app)), joined(all_spellings(app)));
  text += "  case ${COMP_WORDS[1]}:$previous:$current in\n";
  for (const CLI::App* verb : verbs_of(app)) text += bash_cases(*verb);
  return text + R"(  esac
  [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _dyad dyad)";
}

/// Text inside '...[text]...' of a specification.
std::string zsh_text(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '\'')
      safe += "'\\''";
    else if (letter == '[' || letter == ']' || letter == ':' || letter == '\\')
      safe += std::string("\\") + letter;
    else
      safe += letter;
  }
  return safe;
}

std::string zsh_values(const CLI::Option& option) {
  const std::vector<std::string> choices = choices_of(option);
  if (!choices.empty()) return fmt::format(":choice:({})", joined(choices));
  const std::string type = option.get_type_name();
  const bool is_file = type.starts_with("FILE") || type == "MODEL";
  return fmt::format(":{}:{}", zsh_text(type), is_file ? "_files" : " ");
}

std::string zsh_specifications(const CLI::App& verb) {
  std::string text;
  for (const CLI::Option* option : options_of(verb))
    for (const std::string& name : spellings_of(*option))
      text += fmt::format(" \\\n        '{}{}[{}]{}'", name, takes_value(*option) && name.starts_with("--") ? "=" : "",
                          zsh_text(option->get_description()), takes_value(*option) ? zsh_values(*option) : "");
  for (const CLI::Option* option : positionals_of(verb))
    text += fmt::format(" \\\n        '{}{}'", option->get_items_expected_max() > 1 ? "*" : "1", zsh_values(*option));
  return text;
}

std::string zsh_completion(const CLI::App& app) {
  std::string text = R"(#compdef dyad
# zsh completion for dyad, made by `dyad completion zsh`
_dyad() {
  if ((CURRENT == 2)); then
    local -a verbs=()";
  for (const CLI::App* verb : verbs_of(app))
    text += fmt::format("\n      '{}:{}'", verb->get_name(), zsh_text(verb->get_description()));
  text += fmt::format(R"()
    _describe verb verbs
    compadd -- {}
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
)",
                      joined(all_spellings(app)));
  for (const CLI::App* verb : verbs_of(app))
    text += fmt::format("    {})\n      _arguments -s{} ;;\n", verb->get_name(), zsh_specifications(*verb));
  return text + R"(  esac
}
if [[ $funcstack[1] == _dyad ]]; then
  _dyad "$@"
else
  compdef _dyad dyad
fi)";
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("completion", "Print completions for a shell: source <(dyad completion bash)");
  const auto shell = std::make_shared<Shell>(Shell::bash);
  add_choice(*verb, "SHELL", *shell, shells, "Which shell")->required();
  verb->callback([&action, &app, shell] {
    action = [&app, shell] {
      print_result(*shell == Shell::bash ? bash_completion(app) : zsh_completion(app));
      return done;
    };
  });
}

}  // namespace dyad::cli
