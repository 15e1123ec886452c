#include "refine/refiner.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "newton/descent.h"
#include "newton/gauss_newton.h"
#include "newton/start.h"
#include "stream/kept_start.h"
#include "variational/sweeps.h"

namespace dyad {
namespace {

template <typename Scalar>
class VariationalRefiner : public Refiner<Scalar> {
 public:
  VariationalRefiner(const Rows<Scalar>& rows, const RefinerOptions& options, const Beliefs<Scalar>& start,
                     double noise_variance, Workers& workers)
      : interrupted_(options.interrupted),
        sweeps_(rows, {options.shape.task, options.shape.low, options.shape.high}, start, noise_variance, workers) {}

  bool advance(const std::function<void()>& after_step) override {
    if (interrupted_ && interrupted_()) return false;
    sweeps_.sweep();
    ++count_;
    if (after_step) after_step();
    return true;
  }

  [[nodiscard]] std::string level() const override { return fmt::format("sweep {}", count_); }
  [[nodiscard]] double objective() const override { return -sweeps_.bound() / sweeps_.total_weight(); }
  [[nodiscard]] SignedFactors<Scalar> parameters() const override { return sweeps_.beliefs().means; }
  [[nodiscard]] Refined<Scalar> result() const override { return {sweeps_.beliefs(), sweeps_.noise_variance()}; }
  [[nodiscard]] Index looks() const override { return 2 * count_; }

 private:
  const std::function<bool()>& interrupted_;
  VariationalSweeps<Scalar> sweeps_;
  Index count_ = 0;
};

/// Weaker and weaker, in units of the loss of a row; each fit starts from the one before. A strong ridge has hardly any
/// local minima to be caught in.
constexpr std::array ridges{1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 0.0};

template <typename Scalar>
class NewtonRefiner : public Refiner<Scalar> {
 public:
  NewtonRefiner(const Rows<Scalar>& rows, const RefinerOptions& options, const Beliefs<Scalar>& start, Workers& workers)
      : rows_(rows), options_(newton_options(options.shape)), workers_(workers), descent_(rows, options_, workers) {
    options_.interrupted = options.interrupted;
    unknowns_ = static_cast<double>(count_unknowns(options.shape));
    is_measurement_ = !options.shape.linear;
    double sum = 0;
    double squares = 0;
    for (Index i = 0; i < rows.count(); ++i) {
      const auto weight = static_cast<double>(rows.weight(i));
      const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
      weight_ += weight;
      sum += weight * y;
      squares += weight * y * y;
    }
    deviation_ = std::sqrt(std::max(0.0, squares / weight_ - sum * sum / weight_ / weight_));
    descent_.start(start.means);
  }

  bool advance(const std::function<void()>& after_step) override {
    if (is_measurement_) return solve_measurements(after_step);
    if (level_ >= static_cast<Index>(ridges.size()) || is_interrupted()) return false;
    const double ridge = ridges[static_cast<std::size_t>(level_)];
    if (ridge == 0 && weight_ < 2 * unknowns_) return false;
    ++level_;
    // M is of the size of the targets, and A of that of its root.
    const bool classes = options_.task == Task::classification;
    options_.ridge = {ridge * weight_, ridge * weight_ * (classes ? 1 : deviation_)};
    descent_.look_again();
    descend(after_step);
    if (level_ == 1 && !classes && !rows_.is_sparse()) try_signs_of_moments(after_step);
    return !is_interrupted();
  }

  [[nodiscard]] std::string level() const override {
    return is_measurement_ ? std::string("least squares")
                           : fmt::format("ridge {:g}", level_ > 0 ? ridges[static_cast<std::size_t>(level_ - 1)] : 0);
  }
  [[nodiscard]] double objective() const override {
    return exact_ ? exact_->residual_squares / 2 : descent_.objective();
  }
  [[nodiscard]] SignedFactors<Scalar> parameters() const override {
    return exact_ ? exact_->parameters : descent_.parameters();
  }
  [[nodiscard]] Refined<Scalar> result() const override {
    const double squares = exact_ ? exact_->residual_squares : 2 * descent_.loss();
    const double spare = std::max(weight_ - unknowns_, weight_ / 2);
    constexpr double least_noise = 1e-30;
    return {{parameters(), {}}, std::max(least_noise, squares * weight_ / spare)};
  }
  [[nodiscard]] Index looks() const override { return descent_.products() + (exact_ ? exact_->products : 0); }

 private:
  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }

  void descend(const std::function<void()>& after_step) {
    constexpr int most_steps = 30;
    for (int i = 0; i < most_steps && !is_interrupted() && descent_.step(); ++i)
      if (after_step) after_step();
  }

  /// A step cannot turn the sign of a factor, so the numbers of signs that the moments see are worth a start, too.
  void try_signs_of_moments(const std::function<void()>& after_step) {
    if (options_.left_dim > 0 || options_.positive || is_interrupted()) return;
    const SignedFactors<Scalar> other = descent_.parameters();
    const double objective = descent_.objective();
    const MomentStart<Scalar> moments = moment_start(rows_, options_, workers_);
    descent_.start(moments.take(options_, moments.positive_count(options_.rank)));
    descend(after_step);
    if (!(descent_.objective() < objective)) descent_.start(other);
  }

  /// Without noise they can be met exactly, if there are enough of them.
  bool solve_measurements(const std::function<void()>& after_step) {
    if (level_ > 0 || weight_ < unknowns_ || is_interrupted()) return false;
    ++level_;
    const SignedFactors<Scalar> start = descent_.parameters();
    exact_ = gauss_newton(rows_, options_, workers_, &start);
    if (after_step) after_step();
    return exact_->finite && !is_interrupted();
  }

  Rows<Scalar> rows_;
  NewtonOptions options_;
  Workers& workers_;
  Descent<Scalar> descent_;
  std::optional<NewtonFit<Scalar>> exact_;  ///< of measurements
  double unknowns_ = 0;
  double weight_ = 0;     ///< of all rows
  double deviation_ = 0;  ///< of the targets
  bool is_measurement_ = false;
  Index level_ = 0;
};

}  // namespace

template <typename Scalar>
std::unique_ptr<Refiner<Scalar>> make_refiner(const Rows<Scalar>& rows, const RefinerOptions& options,
                                              const Beliefs<Scalar>& start, double noise_variance, Workers& workers) {
  if (options.solver == Solver::variational)
    return std::make_unique<VariationalRefiner<Scalar>>(rows, options, start, noise_variance, workers);
  return std::make_unique<NewtonRefiner<Scalar>>(rows, options, start, workers);
}

template std::unique_ptr<Refiner<float>> make_refiner(const Rows<float>&, const RefinerOptions&, const Beliefs<float>&,
                                                      double, Workers&);
template std::unique_ptr<Refiner<double>> make_refiner(const Rows<double>&, const RefinerOptions&,
                                                       const Beliefs<double>&, double, Workers&);

}  // namespace dyad
