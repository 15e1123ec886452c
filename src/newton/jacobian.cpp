#include "newton/jacobian.h"

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
Jacobian<Scalar>::Jacobian(const Rows<Scalar>& rows, Shape shape, Workers& workers)
    : rows_(rows), shape_(shape), workers_(workers) {
  for (Index i = 0; i < rows.count(); ++i) rows.for_each_entry(i, [&](Index, Scalar) { entries_ += 1; });
}

/// Waking the other workers costs more than little work.
template <typename Scalar>
void Jacobian<Scalar>::split(const std::function<void(int worker, Share share)>& task) const {
  constexpr double little = 2e5;
  if (entries_ * static_cast<double>(width()) < little)
    task(0, {0, rows_.count()});
  else
    workers_.split(rows_.count(), task);
}

template <typename Scalar>
void Jacobian<Scalar>::project_all(const Tall<Scalar>& features, const Vector<Scalar>& squares, Tall<Scalar>& left,
                                   Tall<Scalar>& right, Vector<Scalar>& square) const {
  ++products_;
  const Sides sides(rows_.dim(), parameters_.left_dim);
  const Index columns = features.cols();
  left.resize(rows_.count(), columns);
  right.resize(sides.two() ? rows_.count() : 0, columns);
  square.resize(squares.size() > 0 ? rows_.count() : 0);
  split([&](int, Share share) {
    const Rows<Scalar> part = rows_.slice(share.first, share.count);
    project(sides.left(part), features.data(), columns, left.data() + share.first * columns);
    if (sides.two())
      project(sides.right(part), features.data() + sides.right_first() * columns, columns,
              right.data() + share.first * columns);
    if (squares.size() > 0) project_squares(part, squares.data(), square.data() + share.first);
  });
}

template <typename Scalar>
const Vector<Scalar>& Jacobian<Scalar>::move_to(const SignedFactors<Scalar>& parameters) {
  parameters_ = parameters;
  const Index k = parameters.rank();
  Tall<Scalar> features(parameters.dim(), width());
  features << parameters.weights, parameters.A;
  // Off the diagonal: what A puts there is taken back.
  Vector<Scalar> diagonal;
  if (untied()) {
    diagonal = -(parameters.A.array().square().matrix() * parameters.signs);
    if (parameters.diagonal == Diagonal::free) diagonal += parameters.squares;
  }
  Vector<Scalar> square;
  project_all(features, diagonal, left_, right_, square);
  const Tall<Scalar>& right = right_.rows() > 0 ? right_ : left_;
  predictions_ = left_.col(0).array() + parameters.intercept;
  if (right_.rows() > 0) predictions_ += right_.col(0);
  predictions_ += left_.rightCols(k).cwiseProduct(right.rightCols(k)) * parameters.signs;
  if (square.size() > 0) predictions_ += square;
  return predictions_;
}

template <typename Scalar>
Vector<Scalar> Jacobian<Scalar>::times(const Direction<Scalar>& t) const {
  const Index k = parameters_.rank();
  Vector<Scalar> diagonal;
  if (untied()) {
    diagonal = -2 * (parameters_.A.cwiseProduct(t.features.rightCols(k)) * parameters_.signs);
    if (parameters_.diagonal == Diagonal::free) diagonal += t.squares;
  }
  Tall<Scalar> left;
  Tall<Scalar> right;
  Vector<Scalar> square;
  project_all(t.features, diagonal, left, right, square);
  Vector<Scalar> result = left.col(0).array() + t.intercept;
  const auto factors = [&](const Tall<Scalar>& projected) { return projected.rightCols(k); };
  if (right.rows() > 0) {
    result += right.col(0);
    result +=
        (factors(left).cwiseProduct(factors(right_)) + factors(left_).cwiseProduct(factors(right))) * parameters_.signs;
  } else {
    result += 2 * (factors(left).cwiseProduct(factors(left_)) * parameters_.signs);
  }
  if (square.size() > 0) result += square;
  return result;
}

template <typename Scalar>
Direction<Scalar> Jacobian<Scalar>::transposed_times(const Vector<Scalar>& e) const {
  ++products_;
  const Sides sides(rows_.dim(), parameters_.left_dim);
  const Index k = parameters_.rank();
  const Scalar twice = sides.two() ? Scalar(1) : Scalar(2);
  std::vector<Tall<Scalar>> sums(static_cast<std::size_t>(workers_.count()));
  std::vector<Vector<Scalar>> squares(sums.size());
  split([&](int worker, Share share) {
    const Rows<Scalar> part = rows_.slice(share.first, share.count);
    const auto own = e.segment(share.first, share.count);
    Tall<Scalar>& sum = sums[static_cast<std::size_t>(worker)];
    sum.setZero(rows_.dim(), width());
    const auto add_side = [&](const Rows<Scalar>& side, const Tall<Scalar>& other, Scalar* out) {
      Tall<Scalar> coefficients(share.count, width());
      coefficients.col(0) = own;
      coefficients.rightCols(k) = twice * (own.asDiagonal() * other.middleRows(share.first, share.count).rightCols(k) *
                                           parameters_.signs.asDiagonal());
      add_back_projection(side, coefficients.data(), width(), out);
    };
    add_side(sides.left(part), sides.two() ? right_ : left_, sum.data());
    if (sides.two()) add_side(sides.right(part), left_, sum.data() + sides.right_first() * width());
    if (untied()) {
      Vector<Scalar>& square = squares[static_cast<std::size_t>(worker)];
      square.setZero(rows_.dim());
      add_back_projected_squares(part, own.data(), 1, square.data());
    }
  });
  Direction<Scalar> result;
  result.features.setZero(rows_.dim(), width());
  for (const Tall<Scalar>& sum : sums)
    if (sum.size() > 0) result.features += sum;
  if (untied()) {
    Vector<Scalar> square = Vector<Scalar>::Zero(rows_.dim());
    for (const Vector<Scalar>& sum : squares)
      if (sum.size() > 0) square += sum;
    result.features.rightCols(k) -= 2 * (square.asDiagonal() * parameters_.A * parameters_.signs.asDiagonal());
    if (parameters_.diagonal == Diagonal::free) result.squares = square;
  }
  if (shape_.intercept) result.intercept = e.sum();
  if (!shape_.linear) result.features.col(0).setZero();
  return result;
}

template <typename Scalar>
Vector<Scalar> Jacobian<Scalar>::column_scales() const {
  Vector<Scalar> scales = Vector<Scalar>::Ones(width());
  const Index k = parameters_.rank();
  const Scalar slope = right_.rows() > 0 ? Scalar(1) : Scalar(4);
  Vector<Scalar> squares = left_.rightCols(k).colwise().squaredNorm().transpose();
  if (right_.rows() > 0) squares = (squares + right_.rightCols(k).colwise().squaredNorm().transpose()) / Scalar(2);
  scales.tail(k) = (slope * squares / static_cast<Scalar>(rows_.count())).cwiseMax(Scalar(1e-6));
  return scales;
}

template struct Direction<float>;
template struct Direction<double>;
template class Jacobian<float>;
template class Jacobian<double>;

}  // namespace dyad
