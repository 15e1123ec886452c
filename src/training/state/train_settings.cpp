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

#include <dyad/error.h>

#include "base/file_paths.h"
#include "base/thread_pool.h"
#include "encoding/sources/row_stream.h"
#include "encoding/table.h"
#include "io/byte_stream.h"

namespace dyad {
namespace {

// Names of enumerators in model files.
constexpr std::array<std::pair<const char*, Diagonal>, 3> diagonals{
    {{"tied", Diagonal::tied}, {"zero", Diagonal::zero}, {"free", Diagonal::free}}};
constexpr std::array<std::pair<const char*, Solver>, 7> solvers{{{"auto", Solver::automatic},
                                                                 {"moment", Solver::moment},
                                                                 {"kalman", Solver::kalman},
                                                                 {"newton", Solver::newton},
                                                                 {"variational", Solver::variational},
                                                                 {"sampling", Solver::sampling},
                                                                 {"anova", Solver::anova}}};

/// Upper limits of `rank`, `passes` and `samples`. They detect typing errors; no algorithm depends on them.
constexpr Index max_rank = 10'000;
constexpr Index max_passes = 10'000;
constexpr Index max_sample_count = 100'000;
/// Feature indices are 32-bit signed integers, so that 2^30 is the largest power of two below their limit.
constexpr int max_hash_bits = 30;
/// Row counts are converted to double, which represents integers up to 2^53 exactly. 2^50 leaves a factor of 8 for
/// sums.
constexpr Index max_row_count = Index{1} << 50;

template <typename Choice, std::size_t count>
std::string name_of(const std::array<std::pair<const char*, Choice>, count>& names, Choice choice) {
  for (const auto& [name, value] : names)
    if (value == choice) return name;
  return {};
}

/// Reads the settings that a model file stores as text. Does not own its arguments; the caller keeps them alive.
class SettingsReader {
 public:
  explicit SettingsReader(const ModelFile& file, const std::string& path) : saved_(file.training), path_(path) {}

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
  [[nodiscard]] Choice choice(const std::array<std::pair<const char*, Choice>, count>& names, const char* name) const {
    const std::string value = text(name);
    for (const auto& [known, meaning] : names)
      if (value == known) return meaning;
    fail(name);
  }

  /// Throws the error of a missing or invalid setting.
  [[noreturn]] void fail(const char* name) const {
    throw DataError(path_, 0, 0,
                    std::string("training cannot be resumed from this model: its setting '") + name +
                        "' is missing or invalid; expected a model file written by train");
  }

 private:
  const std::map<std::string, std::string>& saved_;
  const std::string& path_;
};

[[noreturn]] void reject_option(const char* option) {
  throw std::invalid_argument(std::string(option) +
                              " does not agree with the model that is resumed; leave it out to use the model's value");
}

template <typename Value>
void require_same(const std::optional<Value>& given, const Value& saved, const char* option) {
  if (given && *given != saved) reject_option(option);
}

void require_same_columns(const ColumnOptions& given, const FeatureMap& map) {
  // Whether the pattern matches at least one column and all matching columns have the property.
  const auto all_have = [&](const std::string& pattern, auto&& property) {
    Index matches = 0;
    for (const Column& column : map.columns())
      if (matches_pattern(pattern, column.name)) {
        ++matches;
        if (!property(column)) return false;
      }
    return matches > 0;
  };
  const auto categorical = [](const Column& c) { return c.role == Column::Role::categorical; };
  const auto right = [](const Column& c) { return c.is_right; };
  if (!given.target.empty() && given.target != map.target.name) reject_option("`target`");
  if (!given.weight.empty() && given.weight != map.weight) reject_option("`weight`");
  if (given.task && *given.task != map.target.task) reject_option("`task`");
  if (given.hash_bits > 0 && given.hash_bits != map.hash_bits) reject_option("`hash_bits`");
  if (given.index_base > 0 && given.index_base != map.index_base) reject_option("`index_base`");
  if (!given.groups_path.empty()) reject_option("`groups_path`");
  for (const std::string& name : given.categorical)
    if (!all_have(name, categorical)) reject_option("`categorical`");
  for (const std::string& name : given.ignored)
    if (all_have(name, [](const Column&) { return true; })) reject_option("`ignored`");
  const std::string range =
      std::to_string(map.right_first) + "-" + (map.right_last >= 0 ? std::to_string(map.right_last) : std::string());
  for (const std::string& name : given.right)
    if (map.layout == Layout::table ? !all_have(name, right) : name != range) reject_option("`right`");
}

}  // namespace

TrainSettings TrainSettings::make(const TrainOptions& options, ModelFile& file) {
  file.features.kind = options.kind.value_or(Kind::gfm);
  file.precision = options.precision.value_or(Precision::double_precision);
  if (options.range) {
    file.features.target.low = options.range->first;
    file.features.target.high = options.range->second;
    file.features.target.is_range_given = true;
  }
  TrainSettings settings;
  settings.solver = options.solver.value_or(Solver::automatic);
  settings.has_curves = options.has_curves;
  settings.half_life = options.half_life.value_or(0);
  settings.rank = options.rank.value_or(file.features.kind == Kind::phase ? 1 : 8);
  settings.diagonal = options.diagonal;
  settings.batch = options.batch;
  settings.precision = file.precision;
  settings.seed = options.seed.value_or(1);
  return settings;
}

TrainSettings TrainSettings::load(const ModelFile& file, const std::string& path) {
  const SettingsReader saved(file, path);
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
    settings.uses_moments = saved.number<int>("watches_moments") != 0;
  }
  const FeatureMap& map = file.features;
  if ((settings.solver == Solver::anova) != file.anova.has_value()) saved.fail("solver");
  if (file.anova) {
    settings.has_curves = saved.number<int>("curves") != 0;
    if (settings.rows < 1) saved.fail("rows");
    return settings;
  }
  const Index full_rank = map.is_bilinear() ? std::min(map.left_dim(), map.dim() - map.left_dim()) : map.dim();
  if (settings.rank < 1 || settings.rank > full_rank || settings.rank != file.model.rank()) saved.fail("rank");
  if (settings.rows < 1) saved.fail("rows");
  if (settings.batch && *settings.batch < 1) saved.fail("batch");
  if (settings.half_life < 0) saved.fail("half_life");
  if (map.kind != Kind::gfm && settings.diagonal != Diagonal::tied) saved.fail("diagonal");
  return settings;
}

TrainSettings TrainSettings::resume(const TrainOptions& options, const ModelFile& file) {
  const TrainSettings settings = load(file, options.model_path);
  const FeatureMap& map = file.features;
  if (options.range && (!map.target.is_range_given || options.range->first != map.target.low ||
                        options.range->second != map.target.high))
    reject_option("`range`");
  require_same(options.solver, settings.solver, "`solver`");
  require_same(options.half_life, settings.half_life, "`half_life`");
  require_same(options.kind, map.kind, "`kind`");
  require_same(options.rank, settings.rank, "`rank`");
  require_same(options.diagonal, *settings.diagonal, "`diagonal`");
  require_same(options.precision, settings.precision, "`precision`");
  require_same(options.seed, settings.seed, "`seed`");
  if (options.batch) require_same(options.batch, settings.batch.value_or(0), "`batch`");
  require_same_columns(options.columns, map);
  return settings;
}

std::map<std::string, std::string> TrainSettings::to_text() const {
  std::map<std::string, std::string> text{{"solver", name_of(solvers, solver)},
                                          {"rank", std::to_string(rank)},
                                          {"diagonal", name_of(diagonals, diagonal.value_or(Diagonal::tied))},
                                          {"batch", batch ? std::to_string(*batch) : "auto"},
                                          {"seed", std::to_string(seed)},
                                          {"rows", std::to_string(rows)}};
  if (solver == Solver::moment) return text;
  if (solver == Solver::anova) text["curves"] = has_curves ? "1" : "0";
  text["half_life"] = std::to_string(half_life);
  text["watches_moments"] = uses_moments ? "1" : "0";
  return text;
}

bool TrainOptions::requests_multiple_passes() const {
  return solver == Solver::newton || solver == Solver::variational || solver == Solver::sampling ||
         passes.value_or(1) > 1;
}

DataOptions TrainOptions::validation_data() const {
  DataOptions validation;
  validation.paths = {validation_path};
  validation.format = data.format;
  validation.limits = data.limits;
  return validation;
}

void TrainOptions::validate() const {
  const Format format = data.resolve_format();
  data.limits.validate();
  if (!validation_path.empty()) {
    if (validation_path == "-") throw std::invalid_argument("validation_path must be a file, not standard input");
    if (format == Format::npy || validation_data().resolve_format() == Format::npy)
      throw std::invalid_argument(
          "validation_path must not be an npy file, which has no targets; use evaluate with target files");
    if (std::error_code error; std::filesystem::is_other(validation_path, error))
      throw std::invalid_argument("validation_path must be a regular file, because it may be read twice; " +
                                  validation_path + " is a pipe or a device");
    // Reports an unreadable file before training: ByteStream throws the error.
    if (::access(validation_path.c_str(), R_OK) != 0) (void)ByteStream(validation_path);
  }
  if ((model_path.empty() && data.dataset == nullptr) || model_path == "-")
    throw std::invalid_argument("model_path must name a file for the model");
  std::vector<NamedFile> inputs = input_files(data);
  if (!columns.groups_path.empty()) inputs.push_back({columns.groups_path, "the groups"});
  inputs.push_back({validation_path, "the validation rows"});
  require_distinct_files({{model_path, "the model"}}, inputs);
  if (rank && (*rank < 1 || *rank > max_rank))
    throw std::invalid_argument(fmt::format("rank must lie in [1, {}], got {}", max_rank, *rank));
  const Kind model_kind = kind.value_or(Kind::gfm);
  if (model_kind == Kind::phase && rank.value_or(1) != 1)
    throw std::invalid_argument("rank must be 1 for the kind phase");
  if (model_kind != Kind::gfm && diagonal.value_or(Diagonal::tied) != Diagonal::tied)
    throw std::invalid_argument("diagonal must be tied unless the kind is gfm");
  if (!resume && (model_kind == Kind::bilinear) == columns.right.empty())
    throw std::invalid_argument(
        "the kind bilinear needs the columns of its right side (`right`), and no other kind accepts them");
  if (model_kind != Kind::gfm && model_kind != Kind::bilinear &&
      !likelihood_of(columns.task.value_or(Task::regression)).has_identity_link())
    throw std::invalid_argument("the kinds sensing and phase need numeric targets, not classes; leave `task` out");
  if (columns.hash_bits < 0 || columns.hash_bits > max_hash_bits)
    throw std::invalid_argument(
        fmt::format("hash_bits must lie in [1, {}], or be 0 for no hashing, got {}", max_hash_bits, columns.hash_bits));
  if (columns.index_base != 0 && columns.index_base != 1)
    throw std::invalid_argument(fmt::format("index_base must be 0 or 1, got {}", columns.index_base));
  if (solver == Solver::sampling && (model_kind == Kind::sensing || model_kind == Kind::phase ||
                                     (model_kind == Kind::gfm && diagonal.value_or(Diagonal::free) == Diagonal::tied)))
    throw std::invalid_argument(
        "the solver sampling needs the kind gfm with a zero or free diagonal, or the kind bilinear; use the solver "
        "newton "
        "otherwise");
  if (solver == Solver::variational &&
      (kind.value_or(Kind::gfm) != Kind::gfm || diagonal.value_or(Diagonal::free) == Diagonal::tied))
    throw std::invalid_argument(
        "the solver variational needs the kind gfm and a zero or free diagonal; use the solver newton otherwise");
  const bool is_multi_pass = requests_multiple_passes();
  if (is_multi_pass && memory == 0)
    throw std::invalid_argument("multi-pass training needs memory for cached rows; `memory` = 0 allows one pass only");
  if (passes && (*passes < 1 || *passes > max_passes))
    throw std::invalid_argument(fmt::format("passes must lie in [1, {}], got {}", max_passes, *passes));
  if (passes.value_or(1) > 1 && solver == Solver::moment)
    throw std::invalid_argument(
        "the solver moment makes one pass; use auto, kalman, newton or variational with more passes");
  if (solver == Solver::anova && (rank || diagonal || half_life || passes || batch || columns.hash_bits > 0 ||
                                  model_kind != Kind::gfm || memory == 0))
    throw std::invalid_argument(
        "the solver anova has no rank, diagonal, half-life, passes, batch or hashing, needs the kind gfm, and caches "
        "rows "
        "within `memory`; leave these options out, or use another solver");
  if (!has_curves && solver.value_or(Solver::anova) != Solver::anova && solver != Solver::automatic)
    throw std::invalid_argument("`curves` is an option of the solver anova; leave it out, or leave `solver` out");
  if (passes.value_or(2) == 1 && (solver == Solver::newton || solver == Solver::variational))
    throw std::invalid_argument(
        "the solvers newton and variational need more than one pass; leave `passes` out, or raise it");
  if (is_multi_pass && half_life)
    throw std::invalid_argument(
        "`half_life` is for one pass over a stream; it cannot be combined with newton, sampling, variational or "
        "`passes`");
  if (is_multi_pass && resume)
    throw std::invalid_argument("`resume` makes one pass over new rows; leave `passes` and `solver` out");
  if (solver == Solver::moment && (half_life || range))
    throw std::invalid_argument("the moment solver supports neither `half_life` nor `range`; leave them out");
  if (half_life && (*half_life < 1 || *half_life > max_row_count))
    throw std::invalid_argument(fmt::format("half_life must lie in [1, 2^50] rows, got {}", *half_life));
  if (range && !(range->first < range->second && std::isfinite(range->first) && std::isfinite(range->second)))
    throw std::invalid_argument(
        fmt::format("range must be two finite numbers in ascending order, got {} and {}", range->first, range->second));
  if (range && (!likelihood_of(columns.task.value_or(Task::regression)).has_identity_link() ||
                model_kind == Kind::sensing || model_kind == Kind::phase))
    throw std::invalid_argument(
        "`range` is for numeric targets of the kinds gfm and bilinear; classes and measurements have no range");
  if (samples && (*samples < 1 || *samples > max_sample_count))
    throw std::invalid_argument(fmt::format("samples must lie in [1, {}], got {}", max_sample_count, *samples));
  if (samples && solver != Solver::sampling)
    throw std::invalid_argument("`samples` is an option of the solver sampling; set `solver` to sampling");
  if (solver == Solver::sampling && passes)
    throw std::invalid_argument("the solver sampling has no passes; leave `passes` out, or set `samples`");
  if (prior_scale && !(*prior_scale > 0 && std::isfinite(*prior_scale)))
    throw std::invalid_argument(fmt::format("prior_scale must be a positive finite number, got {}", *prior_scale));
  if (prior_scale && (solver != Solver::kalman || resume || model_kind == Kind::sensing || model_kind == Kind::phase))
    throw std::invalid_argument(
        "`prior_scale` is an option of a new model of the solver kalman; set `solver` to kalman, or leave it out");
  if (batch && (*batch < 1 || *batch > max_row_count))
    throw std::invalid_argument(fmt::format("batch must lie in [1, 2^50] rows, got {}", *batch));
  if (checkpoint_every < 0)
    throw std::invalid_argument(fmt::format("checkpoint_every must be at least 0 rows, got {}", checkpoint_every));
  ThreadPool::require_valid_count(threads);
}

}  // namespace dyad
