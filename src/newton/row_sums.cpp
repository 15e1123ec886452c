#include "newton/row_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "rows/products.h"

namespace dyad {
namespace {

/// [w, A].
template <typename Scalar>
Tall<Scalar> features_of(const SignedFactors<Scalar>& parameters) {
  Tall<Scalar> features(parameters.dim(), parameters.rank() + 1);
  features << parameters.weights, parameters.A;
  return features;
}

}  // namespace

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

void TargetSums::add(const TargetSums& other) {
  weight += other.weight;
  sum += other.sum;
  squares += other.squares;
}

void TargetSums::archive(Archive& archive) {
  archive.number("weight", weight);
  archive.number("sum", sum);
  archive.number("squares", squares);
}

template <typename Scalar>
void RowSums<Scalar>::set_zero(Index dim, Index width, bool untied) {
  intercept = loss = curvature = 0;
  features.setZero(dim, width);
  squares.setZero(untied ? dim : 0);
  for (auto& products : products_of_sides) products.setZero(width - 1, width - 1);
}

template <typename Scalar>
void RowSums<Scalar>::add(const RowSums& other) {
  features += other.features;
  squares += other.squares;
  intercept += other.intercept;
  loss += other.loss;
  curvature += other.curvature;
  for (std::size_t side = 0; side < 2; ++side) products_of_sides[side] += other.products_of_sides[side];
}

template <typename Scalar>
void RowSums<Scalar>::archive(Archive& archive, Index dim, Index width, bool untied) {
  archive.matrix("features", features, dim, width);
  archive.matrix("squares", squares, untied ? dim : 0, 1);
  archive.number("intercept", intercept);
  archive.number("loss", loss);
  archive.number("curvature", curvature);
  archive.matrix("left", products_of_sides[0], width - 1, width - 1);
  archive.matrix("right", products_of_sides[1], width - 1, width - 1);
}

template <typename Scalar>
LooksInMemory<Scalar>::LooksInMemory(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers)
    : rows_(rows), options_(options), workers_(workers), sides_(rows.dim(), options.shape.left_dim) {
  for (Index i = 0; i < rows.count(); ++i) rows.for_each_entry(i, [&](Index, Scalar) { entries_ += 1; });
}

template <typename Scalar>
TargetSums LooksInMemory<Scalar>::targets() const {
  TargetSums sums;
  for (Index i = 0; i < rows_.count(); ++i) {
    const auto weight = static_cast<double>(rows_.weight(i));
    const auto y = static_cast<double>(rows_.targets()[static_cast<std::size_t>(i)]);
    const double target = options_.likelihood->observed(y);
    sums.add({weight, weight * target, weight * target * target});
  }
  return sums;
}

template <typename Scalar>
Small<Scalar> LooksInMemory<Scalar>::products(bool squares) const {
  const Index size = 1 + (squares ? 2 : 1) * dim();
  std::vector<Small<Scalar>> sums(static_cast<std::size_t>(workers_.count()));
  workers_.split(rows_.count(), [&](int worker, Share share) {
    Small<Scalar>& sum = sums[static_cast<std::size_t>(worker)];
    sum.setZero(size, size);
    constexpr Index most = 256;
    Tall<Scalar> Z(most, size);
    std::vector<std::pair<Index, Scalar>> entries;
    for (Index done = 0; done < share.count; done += most) {
      const Index count = std::min(most, share.count - done);
      Z.setZero();
      for (Index i = 0; i < count; ++i) {
        const Index row = share.first + done + i;
        const Scalar root = std::sqrt(rows_.weight(row));
        entries.assign(1, {0, root});
        rows_.for_each_entry(row, [&](Index j, Scalar x) {
          if (x == 0) return;
          entries.emplace_back(1 + j, root * x);
          if (squares) entries.emplace_back(1 + dim() + j, root * x * x);
        });
        if (rows_.is_sparse())
          for (const auto& [a, left] : entries)
            for (const auto& [b, right] : entries) sum(b, a) += left * right;
        else
          for (const auto& [a, value] : entries) Z(i, a) = value;
      }
      if (!rows_.is_sparse()) sum.noalias() += Z.transpose() * Z;
    }
  });
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].size() > 0) sums.front() += sums[worker];
  return std::move(sums.front());
}

template <typename Scalar>
Vector<Scalar> LooksInMemory<Scalar>::product_diagonal(bool squares) const {
  Vector<Scalar> sum = Vector<Scalar>::Zero(1 + (squares ? 2 : 1) * dim());
  for (Index i = 0; i < rows_.count(); ++i) {
    const Scalar weight = rows_.weight(i);
    sum[0] += weight;
    rows_.for_each_entry(i, [&](Index j, Scalar x) {
      sum[1 + j] += weight * x * x;
      if (squares) sum[1 + dim() + j] += weight * x * x * x * x;
    });
  }
  return sum;
}

template <typename Scalar>
bool LooksInMemory<Scalar>::curvature_varies() const {
  return !options_.likelihood->has_unit_curvature();
}

/// Waking the other workers costs more than little work.
template <typename Scalar>
RowSums<Scalar> LooksInMemory<Scalar>::sum_over_blocks(const Visit& visit) const {
  RowSums<Scalar> first;
  others_sums_.resize(static_cast<std::size_t>(workers_.count()));
  const auto visit_share = [&](int worker, Share share) {
    RowSums<Scalar>& own = worker == 0 ? first : others_sums_[static_cast<std::size_t>(worker)];
    own.set_zero(dim(), width(), untied());
    const Index most = std::min<Index>(cached_rows(rows_), 256);
    for (Index done = 0; done < share.count; done += most)
      visit(rows_.slice(share.first + done, std::min(most, share.count - done)), own);
  };
  constexpr double little = 1e5;
  if (entries_ * static_cast<double>(width()) < little) {
    visit_share(0, {0, rows_.count()});
    return first;
  }
  workers_.split(rows_.count(), visit_share);
  for (std::size_t worker = 1; worker < others_sums_.size(); ++worker) first.add(others_sums_[worker]);
  return first;
}

/// The loss of row i; -d loss/d prediction is the result, and its second derivative the curvature.
template <typename Scalar>
Scalar LooksInMemory<Scalar>::loss_of_row(const Rows<Scalar>& block, Index i, Scalar prediction, double& loss,
                                          Scalar& curvature) const {
  const auto y = static_cast<double>(block.targets()[static_cast<std::size_t>(i)]);
  const auto f = static_cast<double>(prediction);
  const auto weight = static_cast<double>(block.weight(i));
  curvature = block.weight(i);
  if (!(weight > 0)) return 0;
  // Keeps the Gauss-Newton matrix positive definite where the likelihood saturates, as for classes beyond |f| = 14.
  constexpr double min_curvature = 1e-6;
  const Likelihood::Expansion at = options_.likelihood->expand(y, f);
  loss += weight * at.loss;
  curvature = static_cast<Scalar>(at.curvature > 0 ? weight * std::max(at.curvature, min_curvature) : 0);
  return static_cast<Scalar>(weight * at.gradient);
}

template <typename Scalar>
void LooksInMemory<Scalar>::project_sides(const Rows<Scalar>& block, const Tall<Scalar>& B, Tall<Scalar>& left,
                                          Tall<Scalar>& right) const {
  left.resize(block.count(), B.cols());
  project(sides_.left(block), B.data(), B.cols(), left.data());
  if (!sides_.two()) return;
  right.resize(block.count(), B.cols());
  project(sides_.right(block), B.data() + sides_.right_first() * B.cols(), B.cols(), right.data());
}

template <typename Scalar>
Vector<Scalar> LooksInMemory<Scalar>::predictions(const Rows<Scalar>& block, const SignedFactors<Scalar>& at,
                                                  const Vector<Scalar>& squares, const Tall<Scalar>& left,
                                                  const Tall<Scalar>& right) const {
  const Index k = options_.shape.rank;
  const Tall<Scalar>& other = sides_.two() ? right : left;
  Vector<Scalar> f = left.col(0).array() + at.intercept;
  if (sides_.two()) f += right.col(0);
  f += left.middleCols(1, k).cwiseProduct(other.middleCols(1, k)) * at.signs;
  if (untied()) {
    Vector<Scalar> square(block.count());
    project_squares(block, squares.data(), square.data());
    f += square;
  }
  return f;
}

template <typename Scalar>
void LooksInMemory<Scalar>::add_back(const Rows<Scalar>& block, const SignedFactors<Scalar>& at,
                                     const Vector<Scalar>& e, const Tall<Scalar>& left, const Tall<Scalar>& right,
                                     RowSums<Scalar>& sums) const {
  const Index k = options_.shape.rank;
  const Scalar twice = sides_.two() ? Scalar(1) : Scalar(2);
  Tall<Scalar> coefficients(block.count(), width());
  const auto add_side = [&](const Rows<Scalar>& side, const Tall<Scalar>& other, Scalar* out) {
    coefficients.col(0) = e;
    for (Index i = 0; i < block.count(); ++i)
      coefficients.row(i).tail(k) = (twice * e[i]) * other.row(i).segment(1, k).cwiseProduct(at.signs.transpose());
    add_back_projection(side, coefficients.data(), width(), out);
  };
  add_side(sides_.left(block), sides_.two() ? right : left, sums.features.data());
  if (sides_.two()) add_side(sides_.right(block), left, sums.features.data() + sides_.right_first() * width());
  if (untied()) add_back_projected_squares(block, e.data(), 1, sums.squares.data());
  sums.intercept += e.template cast<double>().sum();
}

template <typename Scalar>
RowSums<Scalar> LooksInMemory<Scalar>::slopes(const SignedFactors<Scalar>& at) const {
  const Index k = options_.shape.rank;
  const Tall<Scalar> features = features_of(at);
  const Vector<Scalar> squares = at.square_coefficients();
  return sum_over_blocks([&](const Rows<Scalar>& block, RowSums<Scalar>& own) {
    Tall<Scalar> left;
    Tall<Scalar> right;
    project_sides(block, features, left, right);
    Vector<Scalar> f = predictions(block, at, squares, left, right);
    Vector<Scalar> h(block.count());
    for (Index i = 0; i < block.count(); ++i) f[i] = loss_of_row(block, i, f[i], own.loss, h[i]);
    own.curvature += h.template cast<double>().sum();
    const auto add_products = [&](const Tall<Scalar>& projections, Small<double>& products) {
      products +=
          (projections.rightCols(k).transpose() * h.asDiagonal() * projections.rightCols(k)).template cast<double>();
    };
    add_products(left, own.products_of_sides[0]);
    if (sides_.two()) add_products(right, own.products_of_sides[1]);
    add_back(block, at, f, left, right, own);
  });
}

template <typename Scalar>
RowSums<Scalar> LooksInMemory<Scalar>::bends(const SignedFactors<Scalar>& at, const Direction<Scalar>& t) const {
  const Index k = options_.shape.rank;
  Tall<Scalar> both(dim(), 2 * width());
  both << features_of(at), t.features;
  const Vector<Scalar> squares = at.square_coefficients();
  Vector<Scalar> along_squares;
  if (untied()) {
    along_squares = -2 * (at.A.cwiseProduct(t.features.rightCols(k)) * at.signs);
    if (options_.shape.diagonal == Diagonal::free) along_squares += t.squares;
  }
  return sum_over_blocks([&](const Rows<Scalar>& block, RowSums<Scalar>& own) {
    Tall<Scalar> left;
    Tall<Scalar> right;
    project_sides(block, both, left, right);
    Vector<Scalar> Jt = left.col(width()).array() + t.intercept;
    const auto here = [&](const Tall<Scalar>& projections) { return projections.middleCols(1, k); };
    const auto along = [&](const Tall<Scalar>& projections) { return projections.rightCols(k); };
    if (sides_.two()) {
      Jt += right.col(width());
      Jt += (along(left).cwiseProduct(here(right)) + here(left).cwiseProduct(along(right))) * at.signs;
    } else {
      Jt += 2 * (along(left).cwiseProduct(here(left)) * at.signs);
    }
    if (untied()) {
      Vector<Scalar> square(block.count());
      project_squares(block, along_squares.data(), square.data());
      Jt += square;
    }
    if (curvature_varies()) {
      const Vector<Scalar> f = predictions(block, at, squares, left, right);
      for (Index i = 0; i < block.count(); ++i) {
        Scalar curvature = 0;
        (void)loss_of_row(block, i, f[i], own.loss, curvature);
        Jt[i] *= curvature;
      }
    } else {
      for (Index i = 0; i < block.count(); ++i) Jt[i] *= block.weight(i);
    }
    add_back(block, at, Jt, left, right, own);
  });
}

template struct Direction<float>;
template struct Direction<double>;
template struct RowSums<float>;
template struct RowSums<double>;
template class LooksInMemory<float>;
template class LooksInMemory<double>;

}  // namespace dyad
