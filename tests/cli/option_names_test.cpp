#include <option_names.h>

#include <commands.h>
#include <option_table.h>

#include <functional>
#include <regex>
#include <stdexcept>

#include <gtest/gtest.h>

#include <dyad/evaluate.h>
#include <dyad/recover.h>
#include <dyad/simulate.h>
#include <dyad/train.h>

namespace dyad::test {
namespace {

/// The parser with all subcommands.
struct Parser {
  CLI::App app{"", "dyad"};
  cli::Action action;

  Parser() { cli::add_commands(app, action); }

  [[nodiscard]] const CLI::App& subcommand(const std::string& name) const {
    for (const CLI::App* candidate : cli::subcommands_of(app))
      if (candidate->get_name() == name) return *candidate;
    throw std::invalid_argument("no subcommand " + name);
  }
};

TEST(OptionNames, EveryFieldHasAnExistingOption) {
  const Parser parser;
  for (const cli::FieldOption& entry : cli::field_options()) {
    bool exists = false;
    for (const CLI::App* subcommand : cli::subcommands_of(parser.app))
      exists = exists || subcommand->get_option_no_throw(std::string(entry.option)) != nullptr;
    EXPECT_TRUE(exists) << entry.field << " " << entry.option;
  }
}

TEST(OptionNames, ReplacesFieldsOnly) {
  const std::pair<const char*, const char*> cases[] = {
      {"rank must be at least 1", "--rank must be at least 1"},
      {"hash_bits must lie in [1, 30], got 40", "--hash-bits must lie in [1, 30], got 40"},
      {"set columns.right or TrainOptions::half_life", "set --right or --forget"},
      {"set `task` or `rank`", "set --task or --rank"},
      {"raise limits.max_columns.", "raise --max-columns."},
      {"the rank of M exceeds the number of rows", "the rank of M exceeds the number of rows"},
      {"half_life.csv has no column 'hash_bits'", "half_life.csv has no column 'hash_bits'"},
      {"/data/model_path/rows.csv: no rows", "/data/model_path/rows.csv: no rows"},
      {"leave out --target-file", "leave out --target-file"},
  };
  for (const auto& [message, expected] : cases) EXPECT_EQ(cli::with_option_names(message), expected);
}

TEST(OptionNames, DependOnTheSubcommand) {
  const Parser parser;
  EXPECT_EQ(cli::with_option_names("kind must be gfm", &parser.subcommand("train")), "--kind must be gfm");
  EXPECT_EQ(cli::with_option_names("kind must be gfm", &parser.subcommand("recover")), "KIND must be gfm");
}

/// Invalid values of the options of one subcommand.
template <typename Options>
struct InvalidOptions {
  const char* subcommand;
  Options valid;
  std::vector<std::function<void(Options&)>> changes;
};

/// Expects that validate() throws for each change, that the translated message contains no names of C++ fields, and
/// that each option in it exists.
template <typename Options>
void expect_option_names(const InvalidOptions<Options>& cases) {
  const Parser parser;
  const CLI::App& subcommand = parser.subcommand(cases.subcommand);
  std::size_t number = 0;
  for (const auto& change : cases.changes) {
    Options options = cases.valid;
    change(options);
    std::string message;
    try {
      options.validate();
      ADD_FAILURE() << cases.subcommand << ", change " << number << " is accepted";
    } catch (const std::invalid_argument& error) {
      message = cli::with_option_names(error.what(), &subcommand);
    }
    ++number;
    const std::regex field_name("[A-Za-z]+_[a-z_]+|[A-Za-z]+Options::");
    EXPECT_FALSE(std::regex_search(message, field_name)) << cases.subcommand << ": " << message;
    const std::regex option_name("--[a-z][a-z-]*");
    for (std::sregex_iterator found(message.begin(), message.end(), option_name); found != std::sregex_iterator();
         ++found)
      EXPECT_NE(subcommand.get_option_no_throw(found->str()), nullptr) << cases.subcommand << ": " << message;
  }
}

TEST(OptionNames, TrainErrorsNameOptions) {
  TrainOptions valid;
  valid.data.paths = {"rows.csv"};
  valid.columns.target = "y";
  valid.model_path = "m.dyad";
  EXPECT_NO_THROW(valid.validate());
  expect_option_names<TrainOptions>(
      {"train",
       valid,
       {
           [](TrainOptions& o) { o.data.paths.clear(); },
           [](TrainOptions& o) { o.data.paths = {"rows.xyz"}; },
           [](TrainOptions& o) { o.data.paths = {"-"}; },
           [](TrainOptions& o) { o.data.limits.max_columns = 0; },
           [](TrainOptions& o) { o.data.limits.max_line_bytes = 0; },
           [](TrainOptions& o) { o.model_path = ""; },
           [](TrainOptions& o) { o.validation_path = "-"; },
           [](TrainOptions& o) { o.validation_path = "/dev/null"; },
           [](TrainOptions& o) { o.rank = 0; },
           [](TrainOptions& o) { o.kind = Kind::phase, o.rank = 2; },
           [](TrainOptions& o) { o.kind = Kind::bilinear; },
           [](TrainOptions& o) { o.kind = Kind::sensing, o.diagonal = Diagonal::free; },
           [](TrainOptions& o) { o.kind = Kind::sensing, o.columns.task = Task::classification; },
           [](TrainOptions& o) { o.columns.right = {"a"}; },
           [](TrainOptions& o) { o.columns.hash_bits = 40; },
           [](TrainOptions& o) { o.columns.index_base = 2; },
           [](TrainOptions& o) { o.passes = 0; },
           [](TrainOptions& o) { o.passes = 3, o.memory = 0; },
           [](TrainOptions& o) { o.passes = 3, o.solver = Solver::moment; },
           [](TrainOptions& o) { o.passes = 1, o.solver = Solver::newton; },
           [](TrainOptions& o) { o.passes = 3, o.half_life = 10; },
           [](TrainOptions& o) { o.passes = 3, o.resume = true; },
           [](TrainOptions& o) { o.solver = Solver::variational, o.diagonal = Diagonal::tied; },
           [](TrainOptions& o) { o.solver = Solver::sampling, o.diagonal = Diagonal::tied; },
           [](TrainOptions& o) { o.solver = Solver::sampling, o.passes = 3; },
           [](TrainOptions& o) { o.samples = 3; },
           [](TrainOptions& o) { o.solver = Solver::sampling, o.samples = 0; },
           [](TrainOptions& o) { o.solver = Solver::moment, o.half_life = 10; },
           [](TrainOptions& o) { o.half_life = 0; },
           [](TrainOptions& o) { o.range = std::pair(1.0, 0.0); },
           [](TrainOptions& o) { o.range = std::pair(0.0, 1.0), o.columns.task = Task::classification; },
           [](TrainOptions& o) { o.batch = 0; },
           [](TrainOptions& o) { o.checkpoint_every = -1; },
           [](TrainOptions& o) { o.threads = -1; },
       }});
}

TEST(OptionNames, PredictErrorsNameOptions) {
  PredictOptions valid;
  valid.data.paths = {"rows.csv"};
  valid.model_path = "m.dyad";
  EXPECT_NO_THROW(valid.validate());
  expect_option_names<PredictOptions>({"predict",
                                       valid,
                                       {
                                           [](PredictOptions& o) { o.model_path = ""; },
                                           [](PredictOptions& o) { o.output_path = "m.dyad"; },
                                           [](PredictOptions& o) { o.threads = -1; },
                                       }});
}

TEST(OptionNames, RecoverErrorsNameOptions) {
  RecoverOptions valid;
  valid.problem.dim = 20;
  EXPECT_NO_THROW(valid.validate());
  expect_option_names<RecoverOptions>({"recover",
                                       valid,
                                       {
                                           [](RecoverOptions& o) { o.rows = 0; },
                                           [](RecoverOptions& o) { o.tolerance = 0; },
                                           [](RecoverOptions& o) { o.memory = -1; },
                                           [](RecoverOptions& o) { o.solver = Solver::newton, o.batch = 100; },
                                           [](RecoverOptions& o) { o.solver = Solver::newton, o.memory = 1; },
                                           [](RecoverOptions& o) { o.solver = Solver::moment, o.batch = 1; },
                                           [](RecoverOptions& o) { o.solver = Solver::moment, o.rows = 1; },
                                           [](RecoverOptions& o) { o.theory = true, o.problem.intercept = 1; },
                                       }});
}

TEST(OptionNames, SimulateErrorsNameOptions) {
  SimulateOptions valid;
  valid.problem.dim = 20;
  valid.rows = 10;
  valid.path = "rows.svm";
  EXPECT_NO_THROW(valid.validate());
  expect_option_names<SimulateOptions>({"simulate",
                                        valid,
                                        {
                                            [](SimulateOptions& o) { o.rows = 0; },
                                            [](SimulateOptions& o) { o.path = ""; },
                                            [](SimulateOptions& o) { o.format = Format::npy; },
                                            [](SimulateOptions& o) { o.target_path = "targets.npy"; },
                                            [](SimulateOptions& o) { o.truth_path = "rows.svm"; },
                                            [](SimulateOptions& o) { o.threads = -1; },
                                        }});
}

TEST(OptionNames, PlantedErrorsNameOptions) {
  PlantedOptions valid;
  valid.dim = 20;
  EXPECT_NO_THROW(valid.validate());
  expect_option_names<PlantedOptions>(
      {"simulate",
       valid,
       {
           [](PlantedOptions& o) { o.dim = 0; },
           [](PlantedOptions& o) { o.right_dim = 3; },
           [](PlantedOptions& o) { o.kind = Kind::bilinear; },
           [](PlantedOptions& o) { o.rank = 21; },
           [](PlantedOptions& o) { o.kind = Kind::phase; },
           [](PlantedOptions& o) { o.kind = Kind::bilinear, o.right_dim = 20, o.signs = Signs::positive; },
           [](PlantedOptions& o) { o.diagonal = Diagonal::free, o.features = FeatureDistribution::rademacher; },
           [](PlantedOptions& o) { o.diagonal = Diagonal::free, o.residual = 0.1; },
           [](PlantedOptions& o) { o.condition = 0; },
           [](PlantedOptions& o) { o.noise = -1; },
           [](PlantedOptions& o) { o.residual = 2; },
       }});
}

}  // namespace
}  // namespace dyad::test
