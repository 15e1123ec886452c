#include "training/state/train_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include <dyad/data_error.h>

#include "base/file_paths.h"
#include "base/thread_pool.h"
#include "encoding/sources/row_stream.h"
#include "encoding/table.h"
#include "io/byte_stream.h"

namespace dyad {
namespace {

constexpr std::array<std::pair<const char*, Diagonal>, 3> diagonals{
    {{"tied", Diagonal::tied}, {"zero", Diagonal::zero}, {"free", Diagonal::free}}};
constexpr std::array<std::pair<const char*, Solver>, 5> solvers{{{"auto", Solver::automatic},
                                                                 {"moment", Solver::moment},
                                                                 {"kalman", Solver::kalman},
                                                                 {"newton", Solver::newton},
                                                                 {"variational", Solver::variational}}};

template <typename Choice, std::size_t count>
std::string word_for(const std::array<std::pair<const char*, Choice>, count>& words, Choice choice) {
  for (const auto& [word, value] : words)
    if (value == choice) return word;
  return {};
}

/// Reads the settings that a model file keeps as text.
class SavedText {
 public:
  explicit SavedText(const ModelFile& file, const std::string& path) : saved_(file.training), path_(path) {}

  [[nodiscard]] std::string text(const char* name) const {
    const auto found = saved_.find(name);
    if (found == saved_.end()) fail(name);
    return found->second;
  }

  template <typename Number>
  [[nodiscard]] Number number(const char* name) const {
    const std::string value = text(name);
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size()) fail(name);
    return result;
  }

  template <typename Choice, std::size_t count>
  [[nodiscard]] Choice choice(const std::array<std::pair<const char*, Choice>, count>& words, const char* name) const {
    const std::string value = text(name);
    for (const auto& [word, meaning] : words)
      if (value == word) return meaning;
    fail(name);
  }

  [[noreturn]] void fail(const char* name) const {
    throw DataError(path_, 0, 0,
                    std::string("the model is of no use for that: its setting '") + name + "' is missing or damaged");
  }

 private:
  const std::map<std::string, std::string>& saved_;
  const std::string& path_;
};

template <typename Value>
void require_same(const std::optional<Value>& given, const Value& saved, const char* option) {
  if (given && *given != saved)
    throw std::invalid_argument(std::string(option) + " does not agree with the model that is resumed; leave it out");
}

void require_same_columns(const ColumnOptions& given, const FeatureMap& map) {
  const auto refuse = [](const char* option) {
    throw std::invalid_argument(std::string(option) + " does not agree with the model that is resumed; leave it out");
  };
  // Whether all columns that are meant, and one at least, have the property.
  const auto are = [&](const std::string& pattern, auto&& property) {
    Index meant = 0;
    for (const Column& column : map.columns())
      if (is_meant(pattern, column.name)) {
        ++meant;
        if (!property(column)) return false;
      }
    return meant > 0;
  };
  const auto categorical = [](const Column& c) { return c.role == Column::Role::category; };
  const auto right = [](const Column& c) { return c.right; };
  if (!given.target.empty() && given.target != map.target.name) refuse("--target");
  if (!given.weight.empty() && given.weight != map.weight) refuse("--weight");
  if (given.task && *given.task != map.target.task) refuse("--task");
  if (given.hash_bits > 0 && given.hash_bits != map.hash_bits) refuse("--hash-bits");
  if (given.index_base > 0 && given.index_base != map.index_base) refuse("--index-base");
  for (const std::string& name : given.categorical)
    if (!are(name, categorical)) refuse("--categorical");
  for (const std::string& name : given.ignored)
    if (are(name, [](const Column&) { return true; })) refuse("--ignore");
  const std::string range =
      std::to_string(map.right_first) + "-" + (map.right_last >= 0 ? std::to_string(map.right_last) : std::string());
  for (const std::string& name : given.right)
    if (map.layout == Layout::table ? !are(name, right) : name != range) refuse("--right");
}

}  // namespace

TrainSettings TrainSettings::fresh(const TrainOptions& options, ModelFile& file) {
  file.features.kind = options.kind.value_or(Kind::gfm);
  file.precision = options.precision.value_or(Precision::double_precision);
  if (options.range) {
    file.features.target.low = options.range->first;
    file.features.target.high = options.range->second;
    file.features.target.range_is_given = true;
  }
  TrainSettings settings;
  settings.solver = options.solver.value_or(Solver::automatic);
  settings.half_life = options.half_life.value_or(0);
  settings.rank = options.rank.value_or(file.features.kind == Kind::phase ? 1 : 8);
  settings.diagonal = options.diagonal;
  settings.batch = options.batch;
  settings.precision = file.precision;
  settings.seed = options.seed.value_or(1);
  return settings;
}

TrainSettings TrainSettings::saved(const ModelFile& file, const std::string& path) {
  const SavedText saved(file, path);
  TrainSettings settings;
  settings.solver = saved.choice(solvers, "solver");
  settings.rank = saved.number<Index>("rank");
  settings.seed = saved.number<std::uint64_t>("seed");
  settings.rows = saved.number<Index>("rows");
  settings.precision = file.precision;
  if (saved.text("batch") != "auto") settings.batch = saved.number<Index>("batch");
  settings.diagonal = saved.choice(diagonals, "diagonal");
  if (settings.solver != Solver::moment) {
    settings.half_life = saved.number<Index>("half_life");
    settings.watches_moments = saved.number<int>("watches_moments") != 0;
  }
  const FeatureMap& map = file.features;
  const Index most_rank = map.is_bilinear() ? std::min(map.left_dim(), map.dim() - map.left_dim()) : map.dim();
  if (settings.rank < 1 || settings.rank > most_rank || settings.rank != file.model.rank()) saved.fail("rank");
  if (settings.rows < 1) saved.fail("rows");
  if (settings.batch && *settings.batch < 1) saved.fail("batch");
  if (settings.half_life < 0) saved.fail("half_life");
  if (map.kind != Kind::gfm && settings.diagonal != Diagonal::tied) saved.fail("diagonal");
  return settings;
}

TrainSettings TrainSettings::resumed(const TrainOptions& options, const ModelFile& file) {
  const TrainSettings settings = saved(file, options.model_path);
  const FeatureMap& map = file.features;
  if (options.range && (!map.target.range_is_given || options.range->first != map.target.low ||
                        options.range->second != map.target.high))
    throw std::invalid_argument("--range does not agree with the model that is resumed; leave it out");
  require_same(options.solver, settings.solver, "--solver");
  require_same(options.half_life, settings.half_life, "--forget");
  require_same(options.kind, map.kind, "--kind");
  require_same(options.rank, settings.rank, "--rank");
  require_same(options.diagonal, *settings.diagonal, "--diagonal");
  require_same(options.precision, settings.precision, "--precision");
  require_same(options.seed, settings.seed, "--seed");
  if (options.batch) require_same(options.batch, settings.batch.value_or(0), "--batch");
  require_same_columns(options.columns, map);
  return settings;
}

std::map<std::string, std::string> TrainSettings::to_text() const {
  std::map<std::string, std::string> text{{"solver", word_for(solvers, solver)},
                                          {"rank", std::to_string(rank)},
                                          {"diagonal", word_for(diagonals, diagonal.value_or(Diagonal::tied))},
                                          {"batch", batch ? std::to_string(*batch) : "auto"},
                                          {"seed", std::to_string(seed)},
                                          {"rows", std::to_string(rows)}};
  if (solver == Solver::moment) return text;
  text["half_life"] = std::to_string(half_life);
  text["watches_moments"] = watches_moments ? "1" : "0";
  return text;
}

bool TrainOptions::asks_to_read_again() const {
  return solver == Solver::newton || solver == Solver::variational || passes.value_or(1) > 1;
}

DataOptions TrainOptions::validation_data() const {
  DataOptions validation;
  validation.paths = {validation_path};
  validation.format = data.format;
  validation.limits = data.limits;
  return validation;
}

void TrainOptions::validate() const {
  const Format format = data.format_of_all();
  data.limits.validate();
  if (!validation_path.empty()) {
    if (validation_path == "-") throw std::invalid_argument("the validation rows must be in a file");
    if (format == Format::npy || validation_data().format_of_all() == Format::npy)
      throw std::invalid_argument("npy rows for validation have no place for targets; use evaluate with --target-file");
    if (std::error_code error; std::filesystem::is_other(validation_path, error))
      throw std::invalid_argument("the validation rows may be read twice, so " + validation_path +
                                  " must be a regular file, not a pipe or a device");
    // A file that cannot be read is reported before training; ByteStream throws the message.
    if (::access(validation_path.c_str(), R_OK) != 0) (void)ByteStream(validation_path);
  }
  if ((model_path.empty() && data.memory == nullptr) || model_path == "-")
    throw std::invalid_argument("a model needs a file: -m MODEL");
  std::vector<NamedFile> inputs = input_files(data);
  inputs.push_back({validation_path, "the validation rows"});
  require_distinct_files({{model_path, "the model"}}, inputs);
  if (rank && (*rank < 1 || *rank > 10000))
    throw std::invalid_argument(fmt::format("rank must lie in [1, 10000], got {}", *rank));
  const Kind of_kind = kind.value_or(Kind::gfm);
  if (of_kind == Kind::phase && rank.value_or(1) != 1)
    throw std::invalid_argument("phase retrieval has rank 1; leave --rank out");
  if (of_kind != Kind::gfm && diagonal.value_or(Diagonal::tied) != Diagonal::tied)
    throw std::invalid_argument("--diagonal goes with gfm; the other kinds have no squares of their own");
  if (!resume && (of_kind == Kind::bilinear) == columns.right.empty())
    throw std::invalid_argument(
        "the columns of the second factor go with --kind bilinear, which needs them: --right COLS");
  if (of_kind != Kind::gfm && of_kind != Kind::bilinear &&
      !likelihood_of(columns.task.value_or(Task::regression)).has_identity_link())
    throw std::invalid_argument("sensing and phase retrieval measure numbers, not classes; leave --task out");
  if (columns.hash_bits < 0 || columns.hash_bits > 30)
    throw std::invalid_argument(fmt::format("hash bits must lie in [1, 30], got {}", columns.hash_bits));
  if (columns.index_base != 0 && columns.index_base != 1)
    throw std::invalid_argument(fmt::format("the index base must be 0 or 1, got {}", columns.index_base));
  if (solver == Solver::variational &&
      (kind.value_or(Kind::gfm) != Kind::gfm || diagonal.value_or(Diagonal::free) == Diagonal::tied))
    throw std::invalid_argument(
        "variational sweeps are for gfm with a diagonal that is zero or free; newton is for all kinds");
  const bool reads_again = asks_to_read_again();
  if (reads_again && memory == 0)
    throw std::invalid_argument("rows can only be read again where they may be kept; --memory 0 means one pass");
  if (passes && (*passes < 1 || *passes > 10000))
    throw std::invalid_argument(fmt::format("passes must lie in [1, 10000], got {}", *passes));
  if (passes.value_or(1) > 1 && (solver == Solver::moment || solver == Solver::kalman))
    throw std::invalid_argument("moment and kalman make one pass; more are for auto, newton and variational");
  if (passes.value_or(2) == 1 && (solver == Solver::newton || solver == Solver::variational))
    throw std::invalid_argument("newton and variational need more than one pass");
  if (reads_again && half_life)
    throw std::invalid_argument(
        "--forget is for streams, which are read once; newton, variational and --passes are not");
  if (reads_again && resume)
    throw std::invalid_argument("--resume goes on in one pass over new rows; leave --passes and --solver out");
  if (solver == Solver::moment && (half_life || range))
    throw std::invalid_argument("--forget and --range are not for the moment solver");
  if (half_life && (*half_life < 1 || *half_life > Index{1} << 50))
    throw std::invalid_argument(fmt::format("data can be half forgotten after 1 to 2^50 rows, got {}", *half_life));
  if (range && !(range->first < range->second && std::isfinite(range->first) && std::isfinite(range->second)))
    throw std::invalid_argument(
        fmt::format("a range goes from a number up to a larger one, got {} to {}", range->first, range->second));
  if (range && (!likelihood_of(columns.task.value_or(Task::regression)).has_identity_link() ||
                of_kind == Kind::sensing || of_kind == Kind::phase))
    throw std::invalid_argument("--range is for numbers to predict; classes and measurements have none");
  if (batch && (*batch < 1 || *batch > Index{1} << 50))
    throw std::invalid_argument(fmt::format("a batch must have between 1 and 2^50 rows, got {}", *batch));
  if (checkpoint_every < 0)
    throw std::invalid_argument(fmt::format("checkpoints need a number of rows above 0, got {}", checkpoint_every));
  ThreadPool::require_possible(threads);
}

}  // namespace dyad
