// Extension module dyad._core: rows, training and prediction. The public API is in dyad/*.py.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dyad/class_predictor.h>
#include <dyad/dataset.h>
#include <dyad/error.h>
#include <dyad/predictor.h>
#include <dyad/train.h>
#include <dyad/version.h>

#include "job.h"
#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

constexpr auto solver_names = {std::pair{"auto", Solver::automatic},
                               {"moment", Solver::moment},
                               {"kalman", Solver::kalman},
                               {"newton", Solver::newton},
                               {"variational", Solver::variational},
                               {"sampling", Solver::sampling},
                               {"anova", Solver::anova}};

std::string name_of(FitStatus status) {
  for (const auto& [name, value] : fit_status_names)
    if (value == status) return name;
  return {};
}

std::string name_of(Solver solver) {
  for (const auto& [name, value] : solver_names)
    if (value == solver) return name;
  return "auto";
}

nb::dict to_dict(const Metrics& metrics, Task task) {
  nb::dict fields;
  fields["loss"] = metrics.loss;
  fields["kind"] = loss_name(task);
  return fields;
}

/// Training options besides the rows: the fields of TrainOptions that Python sets, with enumerators as names. An empty
/// field has the default of TrainOptions, or with `resume` the value of the model.
struct Settings {
  std::optional<Index> rank;
  std::optional<std::string> kind;
  std::optional<std::string> solver;
  std::optional<std::string> diagonal;
  std::optional<std::string> precision;
  std::optional<std::uint64_t> seed;
  std::optional<std::pair<double, double>> range;
  std::optional<Index> half_life;
  std::optional<Index> passes;
  std::optional<Index> samples;
  std::optional<double> prior_scale;
  bool curves = true;              ///< anova: functions may be curved
  double memory = 1e9;             ///< bytes for cached rows
  int threads = 0;                 ///< 0: all cores
  std::string target;              ///< name of the target in the model file; empty with `resume`
  std::vector<std::string> right;  ///< bilinear: columns of z

  [[nodiscard]] TrainOptions options() const {
    TrainOptions options;
    options.rank = rank;
    options.kind = parse_choice<Kind>(
        kind, {{"gfm", Kind::gfm}, {"sensing", Kind::sensing}, {"phase", Kind::phase}, {"bilinear", Kind::bilinear}},
        "kind");
    options.solver = parse_choice<Solver>(solver, solver_names, "solver");
    options.diagonal = parse_choice<Diagonal>(
        diagonal, {{"tied", Diagonal::tied}, {"zero", Diagonal::zero}, {"free", Diagonal::free}}, "diagonal");
    options.precision = parse_choice<Precision>(
        precision, {{"double", Precision::double_precision}, {"single", Precision::single_precision}}, "precision");
    options.seed = seed;
    options.range = range;
    options.half_life = half_life;
    options.passes = passes;
    options.samples = samples;
    options.prior_scale = prior_scale;
    options.has_curves = curves;
    options.memory = memory;
    options.threads = threads;
    options.columns.target = target;
    options.columns.right = right;
    return options;
  }
};

/// Training run. Owns its rows and options, because the run may outlast the call (see Job). Creation and destruction
/// require the GIL.
class FitJob : public Job {
 public:
  FitJob(ArrayRows rows, TrainOptions options, nb::object progress)
      : rows_(std::move(rows)), options_(std::move(options)), progress_(std::move(progress)) {
    options_.data.dataset = &rows_.rows();
  }

  [[nodiscard]] const TrainSummary& summary() const { return summary_; }
  /// Progressive loss of the first pass by number of rows.
  [[nodiscard]] const std::vector<std::pair<Index, double>>& trace() const { return trace_; }

 protected:
  void execute() override {
    TrainHooks hooks;
    hooks.interrupted = [this] { return is_stop_requested(); };
    hooks.progress = [this](const TrainProgress& point) {
      trace_.emplace_back(point.rows, point.average_loss);
      report("pass", point.rows, "", point.average_loss);
    };
    hooks.multi_pass = [this](const MultiPassProgress& point) { report("multi_pass", 0, point.level, point.held_out); };
    summary_ = train(options_, hooks);
  }

 private:
  /// Queues a call of the progress function of Python, unless it is None.
  void report(const char* stage, Index rows, const std::string& level, double loss) {
    post([this, stage, rows, level, loss] {
      if (!progress_.is_none()) progress_(stage, rows, level, loss);
    });
  }

  ArrayRows rows_;
  TrainOptions options_;
  nb::object progress_;
  TrainSummary summary_;
  std::vector<std::pair<Index, double>> trace_;
};

nb::dict to_dict(const TrainSummary& summary, const std::vector<std::pair<Index, double>>& trace) {
  nb::dict fields;
  fields["rows"] = summary.rows;
  fields["all_rows"] = summary.all_rows;
  fields["seconds"] = summary.seconds;
  fields["origin"] = summary.origin;
  fields["noise"] = summary.noise;
  fields["passes"] = summary.passes;
  fields["samples"] = summary.samples;
  fields["solver"] = name_of(summary.solver);
  fields["progressive"] = to_dict(summary.progressive, summary.task);
  fields["metrics"] = to_dict(summary.metrics, summary.task);
  if (summary.status) {
    fields["status"] = name_of(*summary.status);
    fields["status_text"] = summary.status_text;
    fields["outliers"] = summary.outliers;
    fields["matrix_errors"] = summary.matrix_errors;
    fields["factor_errors"] = summary.factor_errors;
  }
  fields["warnings"] = summary.warnings;
  fields["trace"] = trace;
  return fields;
}

nb::tuple fit(const ArrayRows& rows, const Settings& settings, const std::optional<nb::bytes>& resume,
              const nb::object& progress) {
  TrainOptions options = settings.options();
  options.resume = resume.has_value();
  if (resume) options.model_bytes.assign(resume->c_str(), resume->size());
  const auto job = std::make_shared<FitJob>(rows, std::move(options), progress);
  Job::run(job);
  const TrainSummary& summary = job->summary();
  nb::dict fields = to_dict(summary, job->trace());
  if (!summary.class_summaries.empty()) {
    nb::list classes;
    for (const TrainSummary& one : summary.class_summaries) classes.append(to_dict(one, one.trace));
    fields["classes"] = classes;
    fields["temperature"] = summary.temperature;
  }
  return nb::make_tuple(nb::bytes(summary.model_bytes.data(), summary.model_bytes.size()), fields);
}

nb::object predict(const Predictor& predictor, const ArrayRows& rows, bool deviations, int threads) {
  const auto count = static_cast<std::size_t>(rows.rows().count);
  std::vector<double> values(count);
  std::vector<double> standard_deviations(deviations ? count : 0);
  SignalCheck interrupted;
  if (count > 0) {
    const nb::gil_scoped_release release;
    (void)predictor.predict(rows.rows(), values, standard_deviations, threads, {[&] { return interrupted(); }});
  }
  interrupted.rethrow();
  nb::object predictions = to_array(std::move(values));
  if (!deviations) return predictions;
  return nb::make_tuple(predictions, to_array(std::move(standard_deviations)));
}

nb::object predict_log_odds(const Predictor& predictor, const ArrayRows& rows, int threads) {
  std::vector<double> values(static_cast<std::size_t>(rows.rows().count));
  SignalCheck interrupted;
  if (!values.empty()) {
    const nb::gil_scoped_release release;
    (void)predictor.predict_log_odds(rows.rows(), values, threads, {[&] { return interrupted(); }});
  }
  interrupted.rethrow();
  return to_array(std::move(values));
}

/// Terms of predictions: names as (kind, left, right), and the entries of each row.
nb::dict explain(const Predictor& predictor, const ArrayRows& rows, int threads) {
  constexpr std::array kinds{"intercept", "column", "square", "pair", "posterior_average", "limit"};
  Explanation explanation;
  SignalCheck interrupted;
  {
    const nb::gil_scoped_release release;
    explanation = predictor.explain(rows.rows(), threads, {[&] { return interrupted(); }});
  }
  interrupted.rethrow();
  nb::list terms;
  for (const Explanation::TermName& term : explanation.terms)
    terms.append(nb::make_tuple(kinds.at(static_cast<std::size_t>(term.kind)), term.left, term.right));
  nb::dict fields;
  fields["terms"] = terms;
  fields["offsets"] = to_array(std::vector<std::int64_t>(explanation.offsets.begin(), explanation.offsets.end()));
  fields["indices"] = to_array(std::vector<std::int64_t>(explanation.indices.begin(), explanation.indices.end()));
  fields["values"] = to_array(std::move(explanation.values));
  fields["predictions"] = to_array(std::move(explanation.predictions));
  return fields;
}

nb::object predict_classes(const ClassPredictor& predictor, const ArrayRows& rows, bool deviations, int threads) {
  const auto count = static_cast<std::size_t>(rows.rows().count);
  const std::size_t classes = predictor.labels().size();
  std::vector<double> values(count * classes);
  std::vector<double> standard_deviations(deviations ? values.size() : 0);
  SignalCheck interrupted;
  if (count > 0) {
    const nb::gil_scoped_release release;
    (void)predictor.predict(rows.rows(), values, standard_deviations, threads, {[&] { return interrupted(); }});
  }
  interrupted.rethrow();
  nb::object probabilities = to_array(std::move(values), {count, classes});
  if (!deviations) return probabilities;
  return nb::make_tuple(probabilities, to_array(std::move(standard_deviations), {count, classes}));
}

nb::object predict_class_scores(const ClassPredictor& predictor, const ArrayRows& rows, int threads) {
  const auto count = static_cast<std::size_t>(rows.rows().count);
  const std::size_t classes = predictor.labels().size();
  std::vector<double> scores(count * classes);
  SignalCheck interrupted;
  if (count > 0) {
    const nb::gil_scoped_release release;
    (void)predictor.predict_scores(rows.rows(), scores, threads, {[&] { return interrupted(); }});
  }
  interrupted.rethrow();
  return to_array(std::move(scores), {count, classes});
}

nb::list to_list(const std::vector<Term>& terms) {
  nb::list list;
  for (const Term& term : terms) list.append(nb::make_tuple(term.left, term.right, term.coefficient, term.effect));
  return list;
}

/// Functions of an ANOVA model: the axes as (column, knots, labels), share, spread, values and standard errors.
nb::list to_list(const std::vector<Effect>& effects) {
  nb::list list;
  for (const Effect& effect : effects) {
    nb::list axes;
    for (const EffectAxis& axis : effect.axes) axes.append(nb::make_tuple(axis.column, axis.knots, axis.labels));
    nb::dict fields;
    fields["axes"] = axes;
    fields["share"] = effect.share;
    fields["spread"] = effect.spread;
    fields["values"] = to_array(effect.values);
    fields["standard_errors"] = to_array(effect.deviations);
    list.append(fields);
  }
  return list;
}

nb::dict inspect(const Predictor& predictor, Index top) {
  const Inspection inspection = predictor.inspect(top);
  nb::dict fields;
  fields["intercept"] = inspection.intercept;
  fields["spectrum"] = inspection.spectrum;
  fields["weights"] = to_list(inspection.weights);
  fields["pairs"] = to_list(inspection.pairs);
  fields["pairs_are_exact"] = inspection.are_pairs_exact;
  fields["signal"] = to_list(inspection.signal);
  fields["effects"] = to_list(inspection.effects);
  nb::list noise_factors;
  for (const FeatureNoiseFactor& noise : inspection.noise_factors)
    noise_factors.append(nb::make_tuple(noise.feature, noise.factor, noise.standard_error));
  fields["noise_factors"] = noise_factors;
  fields["noise"] = inspection.noise;
  fields["training"] = inspection.training;
  fields["target"] = inspection.target;
  return fields;
}

nb::dict parameters(const Predictor& predictor) {
  const Model<double>& model = predictor.model();
  const auto dim = static_cast<std::size_t>(model.dim());
  const auto rank = static_cast<std::size_t>(model.rank());
  nb::dict fields;
  fields["intercept"] = model.intercept;
  fields["weights"] = to_array(model.weights);
  fields["factors"] = to_array(model.factors, {dim, rank});
  fields["spectrum"] = to_array(model.spectrum);
  fields["squares"] = to_array(model.squares);
  fields["left_dim"] = model.left_dim;
  return fields;
}

}  // namespace

NB_MODULE(_core, module) {
  module.attr("__version__") = DYAD_VERSION;
  nb::exception<DataError> data_error(module, "DataError", PyExc_ValueError);
  data_error.doc() =
      "Invalid content of an input: a file of rows, rows in memory, a model file or statistics.\n\n"
      "The message has the form ``file:line:column: expected ...``. Subclass of ValueError.";

  nb::class_<ArrayRows>(module, "Rows")
      .def_static("dense", &ArrayRows::dense, "values"_a.noconvert())
      .def_static("sparse", &ArrayRows::sparse, "offsets"_a.noconvert(), "indices"_a.noconvert(),
                  "values"_a.noconvert(), "columns"_a)
      .def_static("table", &ArrayRows::table, "count"_a)
      .def("add_numeric", &ArrayRows::add_numeric, "name"_a, "values"_a.noconvert())
      .def("add_categorical", &ArrayRows::add_categorical, "name"_a, "codes"_a.noconvert(), "categories"_a)
      .def("set_targets", &ArrayRows::set_targets, "targets"_a.noconvert(), "labels"_a)
      .def("set_weights", &ArrayRows::set_weights, "weights"_a.noconvert());

  nb::class_<Settings>(module, "Settings")
      .def(nb::init<>())
      .def_rw("rank", &Settings::rank, nb::arg().none())
      .def_rw("kind", &Settings::kind, nb::arg().none())
      .def_rw("solver", &Settings::solver, nb::arg().none())
      .def_rw("diagonal", &Settings::diagonal, nb::arg().none())
      .def_rw("precision", &Settings::precision, nb::arg().none())
      .def_rw("seed", &Settings::seed, nb::arg().none())
      .def_rw("range", &Settings::range, nb::arg().none())
      .def_rw("half_life", &Settings::half_life, nb::arg().none())
      .def_rw("passes", &Settings::passes, nb::arg().none())
      .def_rw("samples", &Settings::samples, nb::arg().none())
      .def_rw("prior_scale", &Settings::prior_scale, nb::arg().none())
      .def_rw("curves", &Settings::curves)
      .def_rw("memory", &Settings::memory)
      .def_rw("threads", &Settings::threads)
      .def_rw("target", &Settings::target)
      .def_rw("right", &Settings::right);

  module.def("fit", &fit, "rows"_a, "settings"_a, "resume"_a.none() = nb::none(), "progress"_a.none() = nb::none());

  nb::class_<Predictor>(module, "Predictor")
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes, const nb::str& file) {
            return Predictor::from_bytes(to_string(bytes), file.c_str());
          },
          "model"_a, "file"_a = "the model")
      .def("predict", &predict, "rows"_a, "deviations"_a = false, "threads"_a = 0)
      .def("predict_log_odds", &predict_log_odds, "rows"_a, "threads"_a = 0)
      .def("explain", &explain, "rows"_a, "threads"_a = 0)
      .def("inspect", &inspect, "top"_a)
      .def("parameters", &parameters)
      .def("is_anova", &Predictor::is_anova)
      .def("column_names", &Predictor::column_names)
      .def("categorical_columns", &Predictor::categorical_columns)
      .def("layout",
           [](const Predictor& predictor) {
             return predictor.layout() == Layout::matrix   ? "matrix"
                    : predictor.layout() == Layout::sparse ? "sparse"
                                                           : "table";
           })
      .def("labels", &Predictor::labels);

  bind_arrow(module);
  bind_features(module);
  nb::class_<ClassPredictor>(module, "ClassPredictor")
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes, const nb::str& file) {
            return ClassPredictor::from_bytes(to_string(bytes), file.c_str());
          },
          "model"_a, "file"_a = "the model")
      .def("predict", &predict_classes, "rows"_a, "deviations"_a = false, "threads"_a = 0)
      .def("predict_scores", &predict_class_scores, "rows"_a, "threads"_a = 0)
      .def("labels", &ClassPredictor::labels)
      .def("label_type", &ClassPredictor::label_type)
      .def("temperature", &ClassPredictor::temperature);

  bind_row_learner(module);
  bind_files(module);
  bind_streams(module);
  bind_distributed(module);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Job::finish_all));
}

}  // namespace dyad::python
