#include "option_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace dyad::cli {
namespace {

constexpr std::array fields{
    FieldOption{"batch", "--batch"},
    FieldOption{"categorical", "--categorical"},
    FieldOption{"checkpoint_every", "--checkpoint-every"},
    FieldOption{"condition", "--condition"},
    FieldOption{"curves", "--curves"},
    FieldOption{"deviations", "--std"},
    FieldOption{"diagonal", "--diagonal"},
    FieldOption{"dim", "--dim"},
    FieldOption{"features", "--features"},
    FieldOption{"format", "--format"},
    FieldOption{"groups_path", "--groups"},
    FieldOption{"half_life", "--forget"},
    FieldOption{"hash_bits", "--hash-bits"},
    FieldOption{"ignored", "--ignore"},
    FieldOption{"index_base", "--index-base"},
    FieldOption{"intercept", "--intercept"},
    FieldOption{"kind", "--kind"},
    FieldOption{"kind", "KIND"},
    FieldOption{"labels", "--labels"},
    FieldOption{"left_dim", "--dim"},
    FieldOption{"max_columns", "--max-columns"},
    FieldOption{"max_line_bytes", "--max-line-bytes"},
    FieldOption{"memory", "--memory"},
    FieldOption{"model_path", "--model"},
    FieldOption{"model_path", "MODEL"},
    FieldOption{"moments", "--moments"},
    FieldOption{"noise", "--noise"},
    FieldOption{"output_path", "--output"},
    FieldOption{"passes", "--passes"},
    FieldOption{"path", "--output"},
    FieldOption{"path", "--export"},
    FieldOption{"outliers", "--outliers"},
    FieldOption{"paths", "DATA"},
    FieldOption{"precision", "--precision"},
    FieldOption{"range", "--range"},
    FieldOption{"rank", "--rank"},
    FieldOption{"residual", "--residual"},
    FieldOption{"resume", "--resume"},
    FieldOption{"right", "--right"},
    FieldOption{"right_dim", "--dim"},
    FieldOption{"rows", "--rows"},
    FieldOption{"seed", "--seed"},
    FieldOption{"signs", "--signs"},
    FieldOption{"solver", "--solver"},
    FieldOption{"samples", "--samples"},
    FieldOption{"target", "--target"},
    FieldOption{"target_path", "--target-file"},
    FieldOption{"target_paths", "--target-file"},
    FieldOption{"task", "--task"},
    FieldOption{"theory", "--theory"},
    FieldOption{"threads", "--threads"},
    FieldOption{"tolerance", "--tolerance"},
    FieldOption{"top", "--top"},
    FieldOption{"truth_path", "--truth"},
    FieldOption{"update", "--update"},
    FieldOption{"validation_path", "--validation"},
    FieldOption{"weight", "--weight"},
};

/// Members of the option structs that contain fields.
constexpr std::array<std::string_view, 6> containers{"columns", "data", "limits", "options", "problem", "shape"};

bool is_identifier_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Length of the identifier at the start of `text`, with qualifiers separated by "." or "::".
std::size_t identifier_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const std::size_t separator = text.substr(length).starts_with("::")  ? 2
                                  : text.substr(length).starts_with(".") ? 1
                                                                         : 0;
    const std::size_t next = length + separator;
    if (next >= text.size() || !is_identifier_character(text[next])) break;
    length = next + 1;
  }
  return length;
}

/// True for a name such as "columns" or "TrainOptions", which may qualify a field.
bool is_container(std::string_view name) {
  return name.ends_with("Options") || name == "ReadLimits" || name == "ModelShape" ||
         std::find(containers.begin(), containers.end(), name) != containers.end();
}

/// The last component of a qualified name; empty if a qualifier is not a container of fields.
std::string_view unqualified(std::string_view name) {
  for (std::size_t end = name.find_first_of(".:"); end != std::string_view::npos; end = name.find_first_of(".:")) {
    if (!is_container(name.substr(0, end))) return {};
    name.remove_prefix(end + (name[end] == ':' ? 2 : 1));
  }
  return name;
}

/// The argument that sets the field, preferably an argument of `subcommand`; empty if there is none.
std::string_view option_for(std::string_view field, const CLI::App* subcommand) {
  std::string_view first;
  for (const FieldOption& entry : fields) {
    if (entry.field != field) continue;
    if (subcommand == nullptr || subcommand->get_option_no_throw(std::string(entry.option)) != nullptr)
      return entry.option;
    if (first.empty()) first = entry.option;
  }
  return first;
}

/// True if the text after a field makes it the subject of a sentence.
bool begins_with_predicate(std::string_view rest) {
  constexpr std::array<std::string_view, 5> predicates{" must ", " does not ", " is ", " requires ", " cannot "};
  return std::any_of(predicates.begin(), predicates.end(),
                     [&](std::string_view text) { return rest.starts_with(text); });
}

}  // namespace

std::span<const FieldOption> field_options() { return fields; }

std::string with_option_names(std::string_view message, const CLI::App* subcommand) {
  constexpr std::string_view quotes_and_separators = "'\"/\\-.";
  std::string result;
  for (std::size_t i = 0; i < message.size();) {
    const std::size_t length = identifier_length(message.substr(i));
    if (length == 0) {
      result += message[i++];
      continue;
    }
    const std::string_view name = message.substr(i, length);
    const std::string_view rest = message.substr(i + length);
    const std::string_view field = unqualified(name);
    const std::string_view option = field.empty() ? field : option_for(field, subcommand);
    const bool is_in_backquotes = i > 0 && message[i - 1] == '`' && rest.starts_with('`');
    const bool is_user_text =
        (i > 0 && quotes_and_separators.find(message[i - 1]) != std::string_view::npos) ||
        (!rest.empty() && rest.front() != '.' && quotes_and_separators.find(rest.front()) != std::string_view::npos);
    const bool is_field_name = is_in_backquotes || field.size() < name.size() ||
                               field.find('_') != std::string_view::npos || (i == 0 && begins_with_predicate(rest));
    i += length;
    if (option.empty() || is_user_text || !is_field_name) {
      result += name;
    } else if (is_in_backquotes) {
      result.back() = option.front();
      result += option.substr(1);
      ++i;
    } else {
      result += option;
    }
  }
  return result;
}

}  // namespace dyad::cli
