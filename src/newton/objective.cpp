#include "newton/objective.h"

#include <algorithm>
#include <cmath>

#include "base/logistic.h"
#include "base/range.h"
#include "rows/products.h"

namespace dyad {

template <typename Scalar>
double Direction<Scalar>::dot(const Direction& other) const {
  return static_cast<double>(intercept) * static_cast<double>(other.intercept) +
         static_cast<double>(features.cwiseProduct(other.features).sum()) +
         static_cast<double>(squares.dot(other.squares));
}

template <typename Scalar>
void Direction<Scalar>::scale_and_add(Scalar scale, const Direction& other) {
  intercept = other.intercept + scale * intercept;
  features = other.features + scale * features;
  squares = other.squares + scale * squares;
}

template <typename Scalar>
void Direction<Scalar>::add(Scalar scale, const Direction& other) {
  intercept += scale * other.intercept;
  features += scale * other.features;
  squares += scale * other.squares;
}

template <typename Scalar>
SignedFactors<Scalar> moved(SignedFactors<Scalar> parameters, const Direction<Scalar>& step) {
  parameters.intercept += step.intercept;
  parameters.weights += step.features.col(0);
  parameters.A += step.features.rightCols(parameters.rank());
  if (parameters.squares.size() > 0) parameters.squares += step.squares;
  return parameters;
}

/// What one worker adds up over its rows.
template <typename Scalar>
struct Objective<Scalar>::Sums {
  Tall<Scalar> features;
  Vector<Scalar> squares;
  double intercept = 0;
  double loss = 0;
  double curvature = 0;
  std::array<Small<double>, 2> products_of_sides;

  void set_zero(Index dim, Index width, bool untied) {
    features.setZero(dim, width);
    squares.setZero(untied ? dim : 0);
    for (auto& products : products_of_sides) products.setZero(width - 1, width - 1);
  }

  void add(const Sums& other) {
    features += other.features;
    squares += other.squares;
    intercept += other.intercept;
    loss += other.loss;
    curvature += other.curvature;
    for (std::size_t side = 0; side < 2; ++side) products_of_sides[side] += other.products_of_sides[side];
  }
};

template <typename Scalar>
Objective<Scalar>::Objective(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers)
    : rows_(rows), options_(options), workers_(workers), sides_(rows.dim(), options.left_dim) {
  double sum = 0;
  double squares = 0;
  for (Index i = 0; i < rows.count(); ++i) {
    rows.for_each_entry(i, [&](Index, Scalar) { entries_ += 1; });
    const auto weight = static_cast<double>(rows.weight(i));
    const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
    const double target = options.task == Task::regression ? y : (y > 0 ? 1 : 0);
    total_weight_ += weight;
    sum += weight * target;
    squares += weight * target * target;
  }
  if (curvature_varies()) curvature_.resize(static_cast<std::size_t>(rows.count()));
  if (!(total_weight_ > 0)) return;
  const double mean = sum / total_weight_;
  constant_loss_ = std::max(0.0, squares / total_weight_ - mean * mean) / 2;
  if (options.task == Task::classification) {
    const auto part = [](double p) { return p > 0 ? -p * std::log(p) : 0; };
    constant_loss_ = part(mean) + part(1 - mean);
  }
}

template <typename Scalar>
bool Objective<Scalar>::curvature_varies() const {
  return options_.task == Task::classification || std::isfinite(options_.low) || std::isfinite(options_.high);
}

/// Waking the other workers costs more than little work.
template <typename Scalar>
typename Objective<Scalar>::Sums Objective<Scalar>::sum_over_blocks(
    const std::function<void(const Rows<Scalar>& block, Index first, Sums& sums)>& visit) const {
  ++products_;
  std::vector<Sums> sums(static_cast<std::size_t>(workers_.count()));
  const auto visit_share = [&](int worker, Share share) {
    Sums& own = sums[static_cast<std::size_t>(worker)];
    own.set_zero(rows_.dim(), width(), untied());
    const Index most = std::min<Index>(cached_rows(rows_), 256);
    for (Index done = 0; done < share.count; done += most) {
      const Index first = share.first + done;
      visit(rows_.slice(first, std::min(most, share.count - done)), first, own);
    }
  };
  constexpr double little = 1e5;
  if (entries_ * static_cast<double>(width()) < little) {
    visit_share(0, {0, rows_.count()});
    return std::move(sums.front());
  }
  workers_.split(rows_.count(), visit_share);
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].features.size() > 0) sums.front().add(sums[worker]);
  return std::move(sums.front());
}

/// The loss of row i; -d loss/d prediction is the result, and its second derivative the curvature.
template <typename Scalar>
Scalar Objective<Scalar>::loss_of_row(Index i, Scalar prediction, double& loss, Scalar& curvature) const {
  const auto y = static_cast<double>(rows_.targets()[static_cast<std::size_t>(i)]);
  const auto f = static_cast<double>(prediction);
  const auto weight = static_cast<double>(rows_.weight(i));
  curvature = rows_.weight(i);
  if (!(weight > 0)) return 0;
  if (options_.task == Task::classification) {
    const double p = logistic(f);
    loss -= weight * log_logistic(y > 0 ? f : -f);
    curvature = static_cast<Scalar>(weight * std::max(p * (1 - p), 1e-6));
    return static_cast<Scalar>(weight * ((y > 0 ? 1 : 0) - p));
  }
  if (says_nothing(y, f, options_.low, options_.high)) {
    curvature = 0;
    return 0;
  }
  loss += weight * (y - f) * (y - f) / 2;
  return static_cast<Scalar>(weight * (y - f));
}

template <typename Scalar>
void Objective<Scalar>::add_back(const Rows<Scalar>& block, const Vector<Scalar>& e, const Tall<Scalar>& left,
                                 const Tall<Scalar>& right, Sums& sums) const {
  const Index k = options_.rank;
  const Scalar twice = sides_.two() ? Scalar(1) : Scalar(2);
  Tall<Scalar> coefficients(block.count(), width());
  const auto add_side = [&](const Rows<Scalar>& side, const Tall<Scalar>& other, Scalar* out) {
    coefficients.col(0) = e;
    for (Index i = 0; i < block.count(); ++i)
      coefficients.row(i).tail(k) =
          (twice * e[i]) * other.row(i).segment(1, k).cwiseProduct(parameters_.signs.transpose());
    add_back_projection(side, coefficients.data(), width(), out);
  };
  add_side(sides_.left(block), sides_.two() ? right : left, sums.features.data());
  if (sides_.two()) add_side(sides_.right(block), left, sums.features.data() + sides_.right_first() * width());
  if (untied()) add_back_projected_squares(block, e.data(), 1, sums.squares.data());
  sums.intercept += e.template cast<double>().sum();
}

template <typename Scalar>
Direction<Scalar> Objective<Scalar>::direction_of(const Sums& sums) const {
  Direction<Scalar> result;
  result.features = sums.features;
  if (untied()) {
    result.features.rightCols(options_.rank) -=
        2 * (sums.squares.asDiagonal() * parameters_.A * parameters_.signs.asDiagonal());
    if (options_.diagonal == Diagonal::free) result.squares = sums.squares;
  }
  if (options_.intercept) result.intercept = static_cast<Scalar>(sums.intercept);
  if (!options_.linear) result.features.col(0).setZero();
  return result;
}

template <typename Scalar>
double Objective<Scalar>::move_to(const SignedFactors<Scalar>& parameters) {
  parameters_ = parameters;
  const Index k = options_.rank;
  features_.resize(parameters.dim(), width());
  features_ << parameters.weights, parameters.A;
  squares_ = parameters.square_coefficients();
  const Sums sums = sum_over_blocks([&](const Rows<Scalar>& block, Index first, Sums& own) {
    Tall<Scalar> left(block.count(), width());
    Tall<Scalar> right(sides_.two() ? block.count() : 0, width());
    project(sides_.left(block), features_.data(), width(), left.data());
    if (sides_.two())
      project(sides_.right(block), features_.data() + sides_.right_first() * width(), width(), right.data());
    const Tall<Scalar>& other = sides_.two() ? right : left;
    Vector<Scalar> f = left.col(0).array() + parameters.intercept;
    if (sides_.two()) f += right.col(0);
    f += left.rightCols(k).cwiseProduct(other.rightCols(k)) * parameters.signs;
    if (untied()) {
      Vector<Scalar> square(block.count());
      project_squares(block, squares_.data(), square.data());
      f += square;
    }
    Vector<Scalar> h(block.count());
    for (Index i = 0; i < block.count(); ++i) {
      f[i] = loss_of_row(first + i, f[i], own.loss, h[i]);
      if (!curvature_.empty()) curvature_[static_cast<std::size_t>(first + i)] = h[i];
    }
    own.curvature += h.template cast<double>().sum();
    const auto add_products = [&](const Tall<Scalar>& projections, Small<double>& products) {
      products +=
          (projections.rightCols(k).transpose() * h.asDiagonal() * projections.rightCols(k)).template cast<double>();
    };
    add_products(left, own.products_of_sides[0]);
    if (sides_.two()) add_products(right, own.products_of_sides[1]);
    add_back(block, f, left, right, own);
  });
  total_curvature_ = sums.curvature;
  products_of_sides_ = sums.products_of_sides;
  descent_ = direction_of(sums);
  return sums.loss / total_weight_;
}

template <typename Scalar>
Direction<Scalar> Objective<Scalar>::curvature_times(const Direction<Scalar>& t) const {
  const Index k = options_.rank;
  Tall<Scalar> both(features_.rows(), 2 * width());
  both << features_, t.features;
  Vector<Scalar> squares;
  if (untied()) {
    squares = -2 * (parameters_.A.cwiseProduct(t.features.rightCols(k)) * parameters_.signs);
    if (options_.diagonal == Diagonal::free) squares += t.squares;
  }
  return direction_of(sum_over_blocks([&](const Rows<Scalar>& block, Index first, Sums& own) {
    Tall<Scalar> left(block.count(), 2 * width());
    Tall<Scalar> right(sides_.two() ? block.count() : 0, 2 * width());
    project(sides_.left(block), both.data(), 2 * width(), left.data());
    if (sides_.two())
      project(sides_.right(block), both.data() + sides_.right_first() * 2 * width(), 2 * width(), right.data());
    Vector<Scalar> Jt = left.col(width()).array() + t.intercept;
    const auto at = [&](const Tall<Scalar>& projections) { return projections.middleCols(1, k); };
    const auto along = [&](const Tall<Scalar>& projections) { return projections.rightCols(k); };
    if (sides_.two()) {
      Jt += right.col(width());
      Jt += (along(left).cwiseProduct(at(right)) + at(left).cwiseProduct(along(right))) * parameters_.signs;
    } else {
      Jt += 2 * (along(left).cwiseProduct(at(left)) * parameters_.signs);
    }
    if (untied()) {
      Vector<Scalar> square(block.count());
      project_squares(block, squares.data(), square.data());
      Jt += square;
    }
    for (Index i = 0; i < block.count(); ++i) Jt[i] *= curvature(first + i);
    add_back(block, Jt, left, right, own);
  }));
}

template struct Direction<float>;
template struct Direction<double>;
template SignedFactors<float> moved(SignedFactors<float>, const Direction<float>&);
template SignedFactors<double> moved(SignedFactors<double>, const Direction<double>&);
template class Objective<float>;
template class Objective<double>;

}  // namespace dyad
