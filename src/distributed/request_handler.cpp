#include "distributed/request_handler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "data/row_cache.h"
#include "encoding/column_reader.h"
#include "solvers/anova/sums_fit.h"
#include "solvers/gauss_newton/in_memory_equations.h"
#include "training/one_pass/buffered_start.h"
#include "training/state/anova_training.h"

namespace dyad {
namespace {

/// Counts and sums of squares of each feature, and the range of the targets.
class SurveyHandler : public RequestHandler {
 public:
  SurveyHandler(const WorkerContext& context, const Request& request)
      : RequestHandler(context, request),
        squares_(Vector<double>::Zero(context.filter->options().shape.dim)),
        counts_(squares_) {}

  void add(RowBlock<double>& block, std::span<const std::uint8_t>) override {
    const Rows<double> rows = block.view();
    for (Index i = 0; i < rows.count(); ++i) {
      rows.for_each_entry(i, [&](Index j, double x) {
        squares_[j] += x * x;
        counts_[j] += x != 0 ? 1 : 0;
      });
      const double y = target_.unscale(rows.targets()[static_cast<std::size_t>(i)]);
      min_target_ = std::min(min_target_, y);
      max_target_ = std::max(max_target_, y);
    }
  }

  void write(Archive& response) override {
    response.matrix("squares", squares_, squares_.size(), 1);
    response.matrix("counts", counts_, counts_.size(), 1);
  }

 private:
  Vector<double> squares_;  ///< sum of squares of each feature
  Vector<double> counts_;   ///< number of non-zero values of each feature
};

/// Collects blocks of rows into larger ones. Each computation of sums has a cost proportional to the size of the model,
/// so the buffer is full as soon as it has more entries than the model has parameters.
class RowBuffer {
 public:
  explicit RowBuffer(const ModelShape& shape) : dim_(shape.dim), width_(shape.rank + 1) {}

  void append(const Rows<double>& rows) { rows_.append(rows); }
  [[nodiscard]] bool is_full() const { return rows_.entries() > static_cast<double>(dim_ * width_); }
  /// Calls visit(rows) unless the buffer is empty, and empties it.
  template <typename Visit>
  void flush(Visit&& visit) {
    RowCache<double> rows = std::exchange(rows_, {});
    if (rows.count() > 0) visit(rows.view(dim_));
  }

 private:
  Index dim_;
  Index width_;  ///< number of parameters per feature: a weight and `rank` factors
  RowCache<double> rows_;
};

/// Increase of the natural parameters of a filter by the rows: its natural parameters after the rows minus those
/// before.
class FilterHandler : public RequestHandler {
 public:
  FilterHandler(const WorkerContext& context, const Request& request)
      : RequestHandler(context, request), filter_(*context.filter) {}

  void read_body(Archive& body) override {
    body.group("filter", [&] { filter_.archive(body); });
    filter_.hold_prior();
    if (!request_.has_range) filter_.set_likelihood(make_likelihood(target_.task));
    initial_ = filter_.natural_parameters();
    initial_noise_ = filter_.noise_variance();
  }

  void write(Archive& response) override {
    // A filter that is not finite contributes 0. Its losses are limited to max_loss and show the divergence.
    const bool is_finite = filter_.is_finite();
    NaturalParameters increase = is_finite ? filter_.natural_parameters() : initial_;
    increase.add(-1, initial_);
    increase.archive(response, filter_.natural_parameter_count());
    double noise = rows_ * (is_finite ? filter_.noise_variance() : initial_noise_);
    response.number("noise", noise);
  }

 protected:
  KalmanFilter<double> filter_;
  double rows_ = 0;  ///< number of rows so far

 private:
  NaturalParameters initial_;
  double initial_noise_ = 0;
};

/// One pass of the filter over the rows.
class PassHandler : public FilterHandler {
 public:
  using FilterHandler::FilterHandler;

  void add(RowBlock<double>& block, std::span<const std::uint8_t>) override {
    const Rows<double> rows = block.view();
    rows_ += static_cast<double>(rows.count());
    predictions_.resize(static_cast<std::size_t>(rows.count()));
    filter_.learn(rows, predictions_);
    add_losses(rows, predictions_);
  }

 private:
  std::vector<double> predictions_;
};

/// Increase of the precisions by a Laplace approximation at the means of the filter, which do not change.
class PrecisionsHandler : public FilterHandler {
 public:
  PrecisionsHandler(const WorkerContext& context, const Request& request)
      : FilterHandler(context, request), buffer_(context.filter->options().shape) {}

  void add(RowBlock<double>& block, std::span<const std::uint8_t>) override {
    rows_ += static_cast<double>(block.count());
    buffer_.append(block.view());
    if (buffer_.is_full()) flush();
  }

  void write(Archive& response) override {
    flush();
    FilterHandler::write(response);
  }

 private:
  void flush() {
    buffer_.flush([&](const Rows<double>& rows) { filter_.add_laplace_precisions(rows); });
  }

  RowBuffer buffer_;
};

/// Base of the handlers that return sums of NormalEquations, over rows whose features are divided by their scales.
class NormalEquationsHandler : public RequestHandler {
 public:
  NormalEquationsHandler(const WorkerContext& context, const Request& request)
      : RequestHandler(context, request),
        options_(newton_options(context.filter->options())),
        buffer_(shape()),
        held_out_(shape()) {
    if (!request.has_range) options_.likelihood = make_likelihood(target_.task);
  }

  void read_body(Archive& body) override {
    bool has_scales = false;
    body.number("has_scales", has_scales);
    if (has_scales) body.vector("scales", scales_, shape().dim);
  }

  void add(RowBlock<double>& block, std::span<const std::uint8_t> uses) override {
    scale(block);
    buffer_.append(block.view().only(uses, used));
    held_out_.append(block.view().only(uses, held_out));
    if (buffer_.is_full()) flush();
  }

  void write(Archive& response) final {
    flush();
    write_sums(response);
  }

 protected:
  using Equations = InMemoryNormalEquations;

  virtual void add_sums(const Equations& equations) = 0;
  virtual void write_sums(Archive& response) = 0;
  virtual void add_held_out(const Rows<double>&) {}
  [[nodiscard]] const ModelShape& shape() const { return context_.filter->options().shape; }
  /// Number of rows of the Gram matrix of (1, x), or of (1, x, x^2).
  [[nodiscard]] Index gram_size() const { return 1 + (request_.has_squares ? 2 : 1) * shape().dim; }

 private:
  void flush() {
    held_out_.flush([&](const Rows<double>& rows) { add_held_out(rows); });
    buffer_.flush([&](const Rows<double>& rows) { add_sums(Equations(rows, options_, context_.pool)); });
  }

  void scale(RowBlock<double>& block) const {
    if (scales_.empty()) return;
    const auto inverse_scale = [&](std::size_t j) { return scales_[j] > 0 ? 1 / scales_[j] : 0; };
    for (std::size_t e = 0; e < block.values.size(); ++e)
      block.values[e] *= inverse_scale(block.is_dense ? e % static_cast<std::size_t>(block.dim)
                                                      : static_cast<std::size_t>(block.columns[e]));
  }

  NewtonOptions options_;
  Scales scales_;
  RowBuffer buffer_;
  RowBuffer held_out_;
};

/// Sums of the targets.
class TargetsHandler : public NormalEquationsHandler {
 public:
  using NormalEquationsHandler::NormalEquationsHandler;

 protected:
  void add_sums(const Equations& equations) override { targets_.add(equations.targets()); }
  void write_sums(Archive& response) override { targets_.archive(response); }

 private:
  TargetSums targets_;
};

/// Gram matrix of (1, x), or of (1, x, x^2).
class GramHandler : public NormalEquationsHandler {
 public:
  GramHandler(const WorkerContext& context, const Request& request)
      : NormalEquationsHandler(context, request), gram_(Matrix<double>::Zero(gram_size(), gram_size())) {}

 protected:
  void add_sums(const Equations& equations) override { gram_ += equations.gram(request_.has_squares); }
  void write_sums(Archive& response) override { response.matrix("products", gram_, gram_size(), gram_size()); }

 private:
  Matrix<double> gram_;
};

/// Diagonal of the Gram matrix.
class GramDiagonalHandler : public NormalEquationsHandler {
 public:
  GramDiagonalHandler(const WorkerContext& context, const Request& request)
      : NormalEquationsHandler(context, request), diagonal_(Vector<double>::Zero(gram_size())) {}

 protected:
  void add_sums(const Equations& equations) override { diagonal_ += equations.gram_diagonal(request_.has_squares); }
  void write_sums(Archive& response) override { response.matrix("diagonal", diagonal_, gram_size(), 1); }

 private:
  Vector<double> diagonal_;
};

/// Gradient at given parameters, and the losses of held-out rows at the same parameters.
class GradientHandler : public NormalEquationsHandler {
 public:
  GradientHandler(const WorkerContext& context, const Request& request) : NormalEquationsHandler(context, request) {
    set_zero();
  }

  void read_body(Archive& body) override {
    NormalEquationsHandler::read_body(body);
    body.group("parameters", [&] { archive_parameters(body, parameters_, shape().dim, shape().rank); });
  }
  [[nodiscard]] bool needs_held_out() const override { return true; }

 protected:
  void add_sums(const Equations& equations) override { sums_.add(equations.gradient(parameters_)); }

  void write_sums(Archive& response) override {
    // Parameters with sums that are not finite get a loss above all others, so that the step is rejected.
    if (!std::isfinite(sums_.loss + sums_.features.sum() + sums_.squares.sum())) {
      set_zero();
      sums_.loss = max_loss;
    }
    sums_.archive(response, shape().dim, width(), has_squares());
  }

  void add_held_out(const Rows<double>& rows) override {
    std::vector<double> predictions(static_cast<std::size_t>(rows.count()));
    parameters_.predict(rows, predictions);
    add_losses(rows, predictions);
  }

  SignedFactors<double> parameters_;
  RowSums sums_;

 private:
  [[nodiscard]] Index width() const { return shape().rank + 1; }
  [[nodiscard]] bool has_squares() const { return shape().diagonal != Diagonal::tied; }
  void set_zero() { sums_.set_zero(shape().dim, width(), has_squares()); }
};

/// Product of the Gauss-Newton Hessian at given parameters with a vector.
class CurvatureProductHandler : public GradientHandler {
 public:
  using GradientHandler::GradientHandler;

  void read_body(Archive& body) override {
    GradientHandler::read_body(body);
    body.group("along", [&] { archive_parameter_vector(body, along_, shape().dim, shape().rank, shape().diagonal); });
  }
  [[nodiscard]] bool needs_held_out() const override { return false; }

 protected:
  void add_sums(const Equations& equations) override { sums_.add(equations.curvature_product(parameters_, along_)); }

 private:
  ParameterVector along_;
};

/// Sums for the functions of an ANOVA model.
class AnovaSumsHandler : public RequestHandler {
 public:
  AnovaSumsHandler(const WorkerContext& context, const Request& request) : RequestHandler(context, request) {}

  void read_body(Archive& body) override {
    archive_functions(body, model_);
    sums_ = BasisSums(model_);
  }

  void add(RowBlock<double>& block, std::span<const std::uint8_t>) override {
    const Rows<double> rows = block.view();
    const ColumnReader reader(context_.map);
    ColumnTable table = reader.empty_table();
    reader.append(rows, table);
    const ResponseLink link(anova_options(target_));
    sums_.add(model_, table, block.targets, block.weights, link, context_.pool);
    for (const double target : block.targets) {
      const double y = target_.unscale(target);
      min_target_ = std::min(min_target_, y);
      max_target_ = std::max(max_target_, y);
    }
  }

  void write(Archive& response) override {
    response.group("sums", [&] { sums_.archive(response); });
  }

 private:
  AnovaModel model_;
  BasisSums sums_;
};

template <typename Handler>
std::unique_ptr<RequestHandler> make_handler(const WorkerContext& context, const Request& request) {
  return std::make_unique<Handler>(context, request);
}

}  // namespace

RequestHandler::RequestHandler(const WorkerContext& context, const Request& request)
    : context_(context), request_(request), target_(context.map.target) {
  if (request.has_range) return;
  const Target none;
  target_.low = none.low;
  target_.high = none.high;
  target_.min_seen = none.min_seen;
  target_.max_seen = none.max_seen;
}

void RequestHandler::add_losses(const Rows<double>& rows, std::span<const double> predictions) {
  const auto bounded = [](double loss) { return loss < max_loss ? loss : max_loss; };
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double weight = rows.weight(static_cast<Index>(i));
    const double y = rows.targets()[i];
    const double f = predictions[i];
    if (weight > 0) losses_.add({weight, weight * bounded(target_.score(y, f)), weight * bounded((y - f) * (y - f))});
  }
}

std::unique_ptr<RequestHandler> make_request_handler(const WorkerContext& context, const Request& request) {
  if ((context.filter == nullptr) != (request.type == Request::Type::anova_sums))
    throw std::runtime_error("the request belongs to a model of another solver");
  // In the order of Request::Type.
  static constexpr std::array makers{make_handler<SurveyHandler>,           make_handler<PassHandler>,
                                     make_handler<TargetsHandler>,          make_handler<GramHandler>,
                                     make_handler<GramDiagonalHandler>,     make_handler<GradientHandler>,
                                     make_handler<CurvatureProductHandler>, make_handler<PrecisionsHandler>,
                                     make_handler<AnovaSumsHandler>};
  return makers.at(static_cast<std::size_t>(request.type))(context, request);
}

}  // namespace dyad
