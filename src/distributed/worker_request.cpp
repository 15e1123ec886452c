#include "distributed/worker_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "data/row_cache.h"
#include "solvers/gauss_newton/in_memory_equations.h"
#include "training/one_pass/buffered_start.h"

namespace dyad {
namespace {

/// Counts and sums of squares of each feature, and the range of the targets.
class SurveyRequest : public WorkerRequest {
 public:
  SurveyRequest(const WorkerContext& context, const Question& question)
      : WorkerRequest(context, question),
        squares_(Vector<double>::Zero(context.filter.options().shape.dim)),
        counts_(squares_) {}

  void add(RowBlock<double>& block, std::span<const std::uint8_t>) override {
    const Rows<double> rows = block.view();
    for (Index i = 0; i < rows.count(); ++i) {
      rows.for_each_entry(i, [&](Index j, double x) {
        squares_[j] += x * x;
        counts_[j] += x != 0 ? 1 : 0;
      });
      const double y = target_.in_units(rows.targets()[static_cast<std::size_t>(i)]);
      least_target_ = std::min(least_target_, y);
      most_target_ = std::max(most_target_, y);
    }
  }

  void write(Archive& response) override {
    response.matrix("squares", squares_, squares_.size(), 1);
    response.matrix("counts", counts_, counts_.size(), 1);
  }

 private:
  Vector<double> squares_;
  Vector<double> counts_;
};

/// Rows that wait until there are enough of them: the time of a data pass has a term in the size of the model.
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
  Index width_;
  RowCache<double> rows_;
};

/// What rows add to the natural parameters of a filter.
class FilterRequest : public WorkerRequest {
 public:
  FilterRequest(const WorkerContext& context, const Question& question)
      : WorkerRequest(context, question), filter_(context.filter) {}

  void read_body(Archive& request) override {
    request.group("filter", [&] { filter_.archive(request); });
    if (!question_.has_range) filter_.set_likelihood(make_likelihood(target_.task));
    before_ = filter_.natural_parameters();
    noise_before_ = filter_.noise_variance();
  }

  void write(Archive& response) override {
    // A filter that has diverged adds nothing; its losses show it.
    const bool is_finite = filter_.is_finite();
    NaturalParameters gained = is_finite ? filter_.natural_parameters() : before_;
    gained.add(-1, before_);
    gained.archive(response, filter_.natural_parameter_count());
    double noise = rows_ * (is_finite ? filter_.noise_variance() : noise_before_);
    response.number("noise", noise);
  }

 protected:
  KalmanFilter<double> filter_;
  double rows_ = 0;

 private:
  NaturalParameters before_;
  double noise_before_ = 0;
};

/// One pass of the filter over the rows.
class PassRequest : public FilterRequest {
 public:
  using FilterRequest::FilterRequest;

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

/// Laplace precisions of the rows around the means of the filter.
class PrecisionsRequest : public FilterRequest {
 public:
  PrecisionsRequest(const WorkerContext& context, const Question& question)
      : FilterRequest(context, question), buffer_(context.filter.options().shape) {}

  void add(RowBlock<double>& block, std::span<const std::uint8_t>) override {
    rows_ += static_cast<double>(block.count());
    buffer_.append(block.view());
    if (buffer_.is_full()) flush();
  }

  void write(Archive& response) override {
    flush();
    FilterRequest::write(response);
  }

 private:
  void flush() {
    buffer_.flush([&](const Rows<double>& rows) { filter_.narrow(rows); });
  }

  RowBuffer buffer_;
};

/// Sums of the normal equations, over rows whose features are divided by scales.
class NormalEquationsRequest : public WorkerRequest {
 public:
  NormalEquationsRequest(const WorkerContext& context, const Question& question)
      : WorkerRequest(context, question),
        options_(newton_options(context.filter.options())),
        buffer_(shape()),
        held_out_(shape()) {
    if (!question.has_range) options_.likelihood = make_likelihood(target_.task);
  }

  void read_body(Archive& request) override {
    bool has_scales = false;
    request.number("has_scales", has_scales);
    if (has_scales) request.vector("scales", scales_, shape().dim);
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
  [[nodiscard]] const ModelShape& shape() const { return context_.filter.options().shape; }
  [[nodiscard]] Index product_size() const { return 1 + (question_.squares ? 2 : 1) * shape().dim; }

 private:
  void flush() {
    held_out_.flush([&](const Rows<double>& rows) { add_held_out(rows); });
    buffer_.flush([&](const Rows<double>& rows) { add_sums(Equations(rows, options_, context_.pool)); });
  }

  void scale(RowBlock<double>& block) const {
    if (scales_.empty()) return;
    const auto by = [&](std::size_t j) { return scales_[j] > 0 ? 1 / scales_[j] : 0; };
    for (std::size_t e = 0; e < block.values.size(); ++e)
      block.values[e] *=
          by(block.dense ? e % static_cast<std::size_t>(block.dim) : static_cast<std::size_t>(block.columns[e]));
  }

  NewtonOptions options_;
  Scales scales_;
  RowBuffer buffer_;
  RowBuffer held_out_;
};

class TargetsRequest : public NormalEquationsRequest {
 public:
  using NormalEquationsRequest::NormalEquationsRequest;

 protected:
  void add_sums(const Equations& equations) override { targets_.add(equations.targets()); }
  void write_sums(Archive& response) override { targets_.archive(response); }

 private:
  TargetSums targets_;
};

class ProductsRequest : public NormalEquationsRequest {
 public:
  ProductsRequest(const WorkerContext& context, const Question& question)
      : NormalEquationsRequest(context, question), products_(Small<double>::Zero(product_size(), product_size())) {}

 protected:
  void add_sums(const Equations& equations) override { products_ += equations.products(question_.squares); }
  void write_sums(Archive& response) override {
    response.matrix("products", products_, product_size(), product_size());
  }

 private:
  Small<double> products_;
};

class DiagonalRequest : public NormalEquationsRequest {
 public:
  DiagonalRequest(const WorkerContext& context, const Question& question)
      : NormalEquationsRequest(context, question), diagonal_(Vector<double>::Zero(product_size())) {}

 protected:
  void add_sums(const Equations& equations) override { diagonal_ += equations.product_diagonal(question_.squares); }
  void write_sums(Archive& response) override { response.matrix("diagonal", diagonal_, product_size(), 1); }

 private:
  Vector<double> diagonal_;
};

/// The gradient at given parameters, and the losses of held-out rows there.
class GradientRequest : public NormalEquationsRequest {
 public:
  GradientRequest(const WorkerContext& context, const Question& question) : NormalEquationsRequest(context, question) {
    set_zero();
  }

  void read_body(Archive& request) override {
    NormalEquationsRequest::read_body(request);
    request.group("parameters", [&] { archive_parameters(request, parameters_, shape().dim, shape().rank); });
  }
  [[nodiscard]] bool needs_held_out() const override { return true; }

 protected:
  void add_sums(const Equations& equations) override { sums_.add(equations.gradient(parameters_)); }

  void write_sums(Archive& response) override {
    // The loss of a step that diverges must exceed all others.
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

/// The product of the Gauss-Newton Hessian at given parameters with a vector.
class CurvatureProductRequest : public GradientRequest {
 public:
  using GradientRequest::GradientRequest;

  void read_body(Archive& request) override {
    GradientRequest::read_body(request);
    request.group("along", [&] { archive_direction(request, along_, shape().dim, shape().rank, shape().diagonal); });
  }
  [[nodiscard]] bool needs_held_out() const override { return false; }

 protected:
  void add_sums(const Equations& equations) override { sums_.add(equations.curvature_product(parameters_, along_)); }

 private:
  ParameterVector along_;
};

template <typename Request>
std::unique_ptr<WorkerRequest> make_request(const WorkerContext& context, const Question& question) {
  return std::make_unique<Request>(context, question);
}

}  // namespace

WorkerRequest::WorkerRequest(const WorkerContext& context, const Question& question)
    : context_(context), question_(question), target_(context.target) {
  if (question.has_range) return;
  const Target none;
  target_.low = none.low;
  target_.high = none.high;
  target_.least_seen = none.least_seen;
  target_.most_seen = none.most_seen;
}

void WorkerRequest::add_losses(const Rows<double>& rows, std::span<const double> predictions) {
  const auto bounded = [](double loss) { return loss < max_loss ? loss : max_loss; };
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double weight = rows.weight(static_cast<Index>(i));
    const double y = rows.targets()[i];
    const double f = predictions[i];
    if (weight > 0) losses_.add({weight, weight * bounded(target_.score(y, f)), weight * bounded((y - f) * (y - f))});
  }
}

std::unique_ptr<WorkerRequest> make_worker_request(const WorkerContext& context, const Question& question) {
  // In the order of Question::About.
  static constexpr std::array makers{make_request<SurveyRequest>,           make_request<PassRequest>,
                                     make_request<TargetsRequest>,          make_request<ProductsRequest>,
                                     make_request<DiagonalRequest>,         make_request<GradientRequest>,
                                     make_request<CurvatureProductRequest>, make_request<PrecisionsRequest>};
  return makers.at(static_cast<std::size_t>(question.about))(context, question);
}

}  // namespace dyad
