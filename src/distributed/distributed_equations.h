#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <dyad/parts.h>

#include "distributed/message.h"
#include "distributed/question.h"

namespace dyad {

/// Sends requests to all workers and adds up their responses. Refers to the options, which the caller keeps alive.
class WorkerRequests {
 public:
  explicit WorkerRequests(const PartsOptions& options) : options_(options) {}

  /// `body` appends the data of the question.
  template <typename Body>
  Statistics operator()(Question question, Body&& body) {
    question.has_range = has_range;
    question.held_from = options_.share;
    Archive asked;
    question.archive(asked);
    body(asked);
    const std::string bytes = Message{"question", "rows", asked.take()}.to_bytes();
    ++count;
    Statistics answer = options_.ask(bytes);
    if (answer.model != fingerprint(bytes))
      throw std::invalid_argument("the answer is one to another question; ask all parts the same");
    return answer;
  }

  Index count = 0;
  bool has_range = true;

 private:
  const PartsOptions& options_;
};

/// Mean losses of the held-out rows, or of the rows as they were learned.
struct Losses {
  TargetSums sums;

  explicit Losses(Archive& answer) {
    answer.group("losses", [&] { sums.archive(answer); });
  }
  [[nodiscard]] double loss() const { return sums.sum / sums.weight; }
  [[nodiscard]] double squares() const { return sums.squares / sums.weight; }
};

/// Normal equations of the rows of all workers. Each function sends one request to all of them.
class DistributedNormalEquations : public NormalEquations {
 public:
  DistributedNormalEquations(WorkerRequests& requests, const ModelShape& shape, Scales scales,
                             Question::HeldOut held_out)
      : requests_(requests), shape_(shape), scales_(std::move(scales)), held_out_(held_out) {}

  [[nodiscard]] Index dim() const override { return shape_.dim; }

  [[nodiscard]] TargetSums targets() const override {
    Archive answer(ask(Question::About::targets).sums);
    TargetSums sums;
    sums.archive(answer);
    return sums;
  }
  [[nodiscard]] Small<double> products(bool squares) const override {
    Archive answer(ask(Question::About::products, squares).sums);
    Small<double> sums;
    answer.matrix("products", sums, product_size(squares), product_size(squares));
    return sums;
  }
  [[nodiscard]] Vector<double> product_diagonal(bool squares) const override {
    Archive answer(ask(Question::About::diagonal, squares).sums);
    Vector<double> sums;
    answer.matrix("diagonal", sums, product_size(squares), 1);
    return sums;
  }
  [[nodiscard]] RowSums gradient(const SignedFactors<double>& at) const override {
    return gradient_and_losses(at).first;
  }
  [[nodiscard]] RowSums curvature_product(const SignedFactors<double>& at, const ParameterVector& t) const override {
    SignedFactors<double> parameters = at;
    ParameterVector along = t;
    Archive answer(ask(Question::About::curvature_product, false, [&](Archive& asked) {
                     put_parameters(asked, parameters);
                     asked.group("along",
                                 [&] { archive_direction(asked, along, dim(), shape_.rank, shape_.diagonal); });
                   }).sums);
    return sums_in(answer);
  }

  /// Losses of the held-out rows at these parameters.
  [[nodiscard]] Losses losses(const SignedFactors<double>& at) const { return gradient_and_losses(at).second; }

 private:
  [[nodiscard]] Index product_size(bool squares) const { return 1 + (squares ? 2 : 1) * dim(); }

  void put_parameters(Archive& asked, SignedFactors<double>& parameters) const {
    asked.group("parameters", [&] { archive_parameters(asked, parameters, dim(), shape_.rank); });
  }

  [[nodiscard]] std::pair<RowSums, Losses> gradient_and_losses(const SignedFactors<double>& at) const {
    if (last_ && at.intercept == last_->at.intercept && at.weights == last_->at.weights && at.A == last_->at.A &&
        at.squares == last_->at.squares)
      return last_->found;
    SignedFactors<double> parameters = at;
    Archive answer(
        ask(Question::About::gradient, false, [&](Archive& asked) { put_parameters(asked, parameters); }).sums);
    last_ = Last{at, {sums_in(answer), Losses(answer)}};
    return last_->found;
  }

  [[nodiscard]] RowSums sums_in(Archive& answer) const {
    RowSums sums;
    sums.archive(answer, dim(), shape_.rank + 1, shape_.diagonal != Diagonal::tied);
    return sums;
  }

  template <typename Body>
  Statistics ask(Question::About about, bool squares, Body&& body) const {
    Question question;
    question.about = about;
    question.held_out = held_out_;
    question.squares = squares;
    return requests_(question, [&](Archive& asked) {
      bool has_scales = !scales_.empty();
      Scales scales = scales_;
      asked.number("has_scales", has_scales);
      if (has_scales) asked.vector("scales", scales, dim());
      body(asked);
    });
  }
  [[nodiscard]] Statistics ask(Question::About about, bool squares = false) const {
    return ask(about, squares, [](Archive&) {});
  }

  /// Response to the last request for a gradient, because the same parameters are often requested twice.
  struct Last {
    SignedFactors<double> at;
    std::pair<RowSums, Losses> found;
  };

  WorkerRequests& requests_;
  ModelShape shape_;
  Scales scales_;
  Question::HeldOut held_out_;
  mutable std::optional<Last> last_;
};

}  // namespace dyad
