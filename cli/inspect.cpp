#include <dyad/inspect.h>
#include <dyad/text.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include <nlohmann/json.hpp>

#include "command.h"
#include "effect_text.h"
#include "enum_names.h"
#include "exit_code.h"

namespace dyad::cli {
namespace {

/// Options and output of inspect.
struct Inspect {
  std::string model;        ///< path
  Index top = 20;           ///< number of listed weights and pairs
  std::string export_path;  ///< CSV file; empty: none
  bool verify = false;      ///< check the checksum only
  OutputFlags output;

  void add_to(CLI::App& subcommand) {
    subcommand.add_option("MODEL", model, "Model file")->required()->type_name("FILE");
    add_number(
        subcommand, "--top", top, "N",
        "Number of weights and pairs to list, by decreasing effect; anova: number of functions, by decreasing share "
        "of the explained variance; default 20");
    subcommand
        .add_option(
            "--export", export_path,
            "Write the listed terms as CSV with columns term, left, right, coefficient, effect; anova: the listed "
            "curves and surfaces with columns term, left, left_value, right, right_value, value, "
            "standard_error, share; more than two classes: the column class comes first")
        ->type_name("FILE.csv");
    subcommand.add_flag("--verify", verify, "Check the structure and the checksum of the file, and exit");
    output.add_to(subcommand);
  }

  [[nodiscard]] int run() const {
    const Inspection inspection = inspect(model, verify ? 0 : top);
    if (!output.quiet)
      for (const std::string& warning : inspection.warnings) print_warning(with_option_names(warning));
    if (verify) return print_verification(inspection);
    if (!export_path.empty()) export_terms(inspection, export_path);
    print_result(output.json ? json(inspection).dump() : text(inspection));
    return success;
  }

 private:
  /// inspect() has verified the checksum. Model files of version 1 have none and count as not verified.
  [[nodiscard]] int print_verification(const Inspection& inspection) const {
    const bool is_verified = !inspection.checksum.empty();
    if (output.json)
      print_result(nlohmann::ordered_json{{"verified", is_verified}, {"checksum", inspection.checksum}}.dump());
    else if (is_verified)
      print_result(fmt::format("{}: checksum {} verified", escape_unprintable(model), inspection.checksum));
    return is_verified ? success : data_error;
  }

  /// Whether the listed pairs are proven to be the strongest.
  [[nodiscard]] static std::string pair_guarantee(const Inspection& inspection) {
    if (inspection.are_pairs_exact) return "exact";
    return fmt::format("approximate; the effect of any other pair is at most {:.4g}", inspection.pair_bound);
  }

  /// Bar with a length proportional to |value| / |largest|, of '-' for negative values.
  [[nodiscard]] static std::string bar(double value, double largest) {
    constexpr double max_length = 40;  // fits a terminal of 80 columns after the value
    const double fraction = std::isnormal(largest) ? std::abs(value) / largest : 0;
    std::string bar(static_cast<std::size_t>(max_length * fraction), value < 0 ? '-' : '+');
    return bar;
  }

  /// The classes in the order of their probabilities, and the text of each model.
  [[nodiscard]] static std::string class_text(const Inspection& inspection) {
    std::string lines =
        fmt::format("softmax of the log-odds of {} classes, multiplied by {:.4g}\nclasses:", inspection.classes.size(),
                    inspection.temperature);
    for (const Inspection& model : inspection.classes) lines += " " + escape_unprintable(model.positive);
    for (const Inspection& model : inspection.classes)
      lines += fmt::format("\n\nclass {} against the others\n{}", escape_unprintable(model.positive), text(model));
    return lines;
  }

  [[nodiscard]] static std::string text(const Inspection& inspection) {
    if (!inspection.classes.empty()) return class_text(inspection);
    if (inspection.effect_count > 0) return effect_text(inspection);
    std::string lines;
    const auto add = [&]<typename... Values>(fmt::format_string<Values...> format, Values&&... values) {
      lines += fmt::format(format, std::forward<Values>(values)...) + "\n";
    };
    const std::string target = inspection.target.empty() ? "y" : escape_unprintable(inspection.target);
    add("{} for {}, {} features, rank {}, trained on {} rows", choice_name(kinds, inspection.kind),
        inspection.task != Task::classification
            ? target
            : fmt::format("log-odds of {} = '{}'", target, escape_unprintable(inspection.positive)),
        inspection.features, inspection.rank,
        inspection.training.contains("rows") ? escape_unprintable(inspection.training.at("rows")) : "?");
    add("intercept {:.6g}", inspection.intercept);
    add("\nspectrum of M (numeric columns scaled to unit variance, categories as indicators)");
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
    table("strongest pairs (" + pair_guarantee(inspection) + ")", inspection.pairs);
    table("signal a, up to its sign", inspection.signal);
    if (!inspection.noise_factors.empty()) {
      add("\nnoise by feature (standard deviation {:.4g}, times the factors of the features of a row)",
          inspection.noise);
      add("  {:>14} {:>14}", "factor", "std. error");
      for (const FeatureNoiseFactor& noise : inspection.noise_factors)
        add("  {:>14.4g} {:>14.2g}  {}", noise.factor, noise.standard_error, escape_unprintable(noise.feature));
    }
    add("\ncoefficient: in the units of the data\n"
        "effect: change of {} per standard deviation of each numeric column, or by the presence of a category",
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
    fields["kind"] = choice_name(kinds, inspection.kind);
    fields["features"] = inspection.features;
    if (!inspection.classes.empty()) {
      fields["temperature"] = inspection.temperature;
      for (const Inspection& model : inspection.classes) {
        nlohmann::ordered_json entry{{"label", model.positive}};
        entry.update(json(model));
        fields["classes"].push_back(std::move(entry));
      }
      fields["checksum"] = inspection.checksum;
      return fields;
    }
    if (inspection.effect_count > 0) {
      fields["intercept"] = inspection.intercept;
      fields["noise"] = inspection.noise;
      fields["effect_count"] = inspection.effect_count;
      fields["effects"] = effect_json(inspection);
      fields["training"] = inspection.training;
      fields["checksum"] = inspection.checksum;
      return fields;
    }
    fields["rank"] = inspection.rank;
    fields["intercept"] = inspection.intercept;
    fields["spectrum"] = inspection.spectrum;
    fields["weights"] = list(inspection.weights);
    fields["pairs"] = list(inspection.pairs);
    fields["pairs_are_exact"] = inspection.are_pairs_exact;
    fields["pair_bound"] = inspection.pair_bound;
    if (!inspection.noise_factors.empty()) {
      fields["noise"] = inspection.noise;
      auto factors = nlohmann::ordered_json::array();
      for (const FeatureNoiseFactor& noise : inspection.noise_factors)
        factors.push_back(
            {{"feature", noise.feature}, {"factor", noise.factor}, {"standard_error", noise.standard_error}});
      fields["noise_factors"] = std::move(factors);
    }
    if (inspection.kind == Kind::phase) fields["signal"] = list(inspection.signal);
    fields["training"] = inspection.training;
    fields["checksum"] = inspection.checksum;
    return fields;
  }
};

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* subcommand =
      app.add_subcommand("inspect", "Show the spectrum, weights and pairwise interactions of a model");
  auto command = std::make_shared<Inspect>();
  command->add_to(*subcommand);
  subcommand->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
