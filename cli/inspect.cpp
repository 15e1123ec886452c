#include <dyad/inspect.h>
#include <dyad/text.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include <nlohmann/json.hpp>

#include "command.h"
#include "enum_names.h"
#include "exit_code.h"

namespace dyad::cli {
namespace {

struct Inspect {
  std::string model;
  Index top = 20;
  std::string export_path;
  bool verify = false;
  Output output;

  void add_to(CLI::App& verb) {
    verb.add_option("MODEL", model, "The model, as train wrote it")->required()->type_name("FILE");
    add_number(verb, "--top", top, "N", "How many of the strongest weights and pairs; default 20");
    verb.add_option("--export", export_path, "Write them to this file: term,left,right,coefficient,effect")
        ->type_name("FILE.csv");
    verb.add_flag("--verify", verify, "Only check that the file is a complete model and that its checksum matches");
    output.add_to(verb);
  }

  [[nodiscard]] int run() const {
    const Inspection inspection = inspect(model, verify ? 0 : top);
    if (!output.quiet)
      for (const std::string& warning : inspection.warnings) print_marked(Style::yellow, "warning:", warning);
    if (verify) return print_verification(inspection);
    if (!export_path.empty()) export_terms(inspection, export_path);
    print_result(output.json ? json(inspection).dump() : text(inspection));
    return done;
  }

 private:
  /// Loading has verified the checksum. A model without one is intact as far as its structure goes, but not verified.
  [[nodiscard]] int print_verification(const Inspection& inspection) const {
    const bool is_verified = !inspection.checksum.empty();
    if (output.json)
      print_result(nlohmann::ordered_json{{"verified", is_verified}, {"checksum", inspection.checksum}}.dump());
    else if (is_verified)
      print_result(fmt::format("{}: the checksum {} matches", escape_unprintable(model), inspection.checksum));
    return is_verified ? done : bad_data;
  }

  [[nodiscard]] static std::string exactness(const Inspection& inspection) {
    if (inspection.pairs_are_exact) return "these are the strongest of all";
    return fmt::format("found among the longest factors; a pair left out has an effect of at most {:.4g}",
                       inspection.pair_bound);
  }

  /// Bars of at most 40 letters, whatever the numbers are.
  [[nodiscard]] static std::string bar(double value, double largest) {
    const double share = std::isnormal(largest) ? std::abs(value) / largest : 0;
    std::string bar(static_cast<std::size_t>(40 * share), value < 0 ? '-' : '+');
    return bar;
  }

  [[nodiscard]] static std::string text(const Inspection& inspection) {
    std::string lines;
    const auto add = [&]<typename... Values>(fmt::format_string<Values...> format, Values&&... values) {
      lines += fmt::format(format, std::forward<Values>(values)...) + "\n";
    };
    const std::string target = inspection.target.empty() ? "the target" : escape_unprintable(inspection.target);
    add("{} of {}, {} features, rank {}, trained on {} rows", word_for(kinds, inspection.kind),
        inspection.task != Task::classification
            ? target
            : fmt::format("the log-odds that {} is '{}'", target, escape_unprintable(inspection.positive)),
        inspection.features, inspection.rank,
        inspection.training.contains("rows") ? escape_unprintable(inspection.training.at("rows")) : "?");
    add("intercept {:.6g}", inspection.intercept);
    add("\nspectrum of M, for numbers scaled to standard deviation 1 and categories as 1 or 0");
    double largest = 0;
    for (const double value : inspection.spectrum) largest = std::max(largest, std::abs(value));
    for (const double value : inspection.spectrum) add("  {:>12.6g} {}", value, bar(value, largest));
    const auto table = [&](const std::string& title, const std::vector<Term>& terms) {
      if (terms.empty()) return;
      add("\n{}", title);
      add("  {:>14} {:>14}", "coefficient", "effect");
      for (const Term& term : terms)
        add("  {:>14.6g} {:>14.6g}  {}", term.coefficient, term.effect,
            escape_unprintable(term.right.empty()        ? term.left
                               : term.right == term.left ? term.left + "^2"
                                                         : term.left + " x " + term.right));
    };
    table("strongest weights", inspection.weights);
    table("strongest pairs (" + exactness(inspection) + ")", inspection.pairs);
    table("the signal a, up to its sign", inspection.signal);
    add("\nThe coefficient is what stands before x, or x z, in the units of the data; the effect is what one standard\n"
        "deviation of each column, or being in a category, changes in {}.",
        inspection.task != Task::classification ? "the prediction" : "the log-odds");
    lines.pop_back();
    return lines;
  }

  [[nodiscard]] static nlohmann::ordered_json json(const Inspection& inspection) {
    const auto list = [](const std::vector<Term>& terms) {
      auto array = nlohmann::ordered_json::array();
      for (const Term& term : terms) {
        nlohmann::ordered_json fields{{"left", term.left}};
        if (!term.right.empty()) fields["right"] = term.right;
        fields["coefficient"] = term.coefficient;
        fields["effect"] = term.effect;
        array.push_back(std::move(fields));
      }
      return array;
    };
    nlohmann::ordered_json fields;
    fields["kind"] = word_for(kinds, inspection.kind);
    fields["features"] = inspection.features;
    fields["rank"] = inspection.rank;
    fields["intercept"] = inspection.intercept;
    fields["spectrum"] = inspection.spectrum;
    fields["weights"] = list(inspection.weights);
    fields["pairs"] = list(inspection.pairs);
    fields["pairs_are_exact"] = inspection.pairs_are_exact;
    fields["pair_bound"] = inspection.pair_bound;
    if (inspection.kind == Kind::phase) fields["signal"] = list(inspection.signal);
    fields["training"] = inspection.training;
    fields["checksum"] = inspection.checksum;
    return fields;
  }
};

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("inspect", "Show what a model has learned, by the names of the columns");
  auto command = std::make_shared<Inspect>();
  command->add_to(*verb);
  verb->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
