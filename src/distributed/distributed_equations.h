#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <dyad/distributed.h>

#include "distributed/message.h"
#include "distributed/request.h"

namespace dyad {

/// Sends requests to all workers through `DistributedOptions::send`, which returns the sum of their responses. Does not
/// own the options; the caller keeps them alive. Not thread-safe.
class WorkerRequests {
 public:
  explicit WorkerRequests(const DistributedOptions& options) : options_(options) {}

  /// `write_body` appends the body of the request to its archive. Throws std::invalid_argument if the response belongs
  /// to another request.
  template <typename WriteBody>
  Statistics operator()(Request request, WriteBody&& write_body) {
    request.has_range = has_range;
    request.held_out_from = options_.trained_share;
    Archive archive;
    request.archive(archive);
    write_body(archive);
    const std::string bytes = Message{"question", "rows", archive.take()}.to_bytes();
    ++count;
    Statistics response = options_.send(bytes);
    if (response.model != fingerprint(bytes))
      throw std::invalid_argument(
          "send: the response belongs to another request; return the sum of all workers' responses to this request");
    return response;
  }

  Index count = 0;        ///< number of requests so far
  bool has_range = true;  ///< as in Request

 private:
  const DistributedOptions& options_;
};

/// Losses in a response: of held-out rows, or of rows before they were learned.
struct Losses {
  TargetSums sums;

  explicit Losses(Archive& response) {
    response.group("losses", [&] { sums.archive(response); });
  }
  /// Mean loss.
  [[nodiscard]] double loss() const { return sums.sum / sums.weight; }
  /// Mean squared residual, in units of scaled targets.
  [[nodiscard]] double squares() const { return sums.squares / sums.weight; }
};

/// Normal equations of the rows of all workers. Each function is one data pass: it sends one request to all workers.
/// Does not own `requests`; the caller keeps it alive. Not thread-safe.
class DistributedNormalEquations : public NormalEquations {
 public:
  DistributedNormalEquations(WorkerRequests& requests, const ModelShape& shape, Scales scales,
                             Request::HeldOutUse held_out_use)
      : requests_(requests), shape_(shape), scales_(std::move(scales)), held_out_use_(held_out_use) {}

  [[nodiscard]] Index dim() const override { return shape_.dim; }

  [[nodiscard]] TargetSums targets() const override {
    Archive response(send(Request::Type::targets).sums);
    TargetSums sums;
    sums.archive(response);
    return sums;
  }
  [[nodiscard]] Matrix<double> gram(bool squares) const override {
    Archive response(send(Request::Type::gram, squares).sums);
    Matrix<double> sums;
    response.matrix("products", sums, gram_size(squares), gram_size(squares));
    return sums;
  }
  [[nodiscard]] Vector<double> gram_diagonal(bool squares) const override {
    Archive response(send(Request::Type::gram_diagonal, squares).sums);
    Vector<double> sums;
    response.matrix("diagonal", sums, gram_size(squares), 1);
    return sums;
  }
  [[nodiscard]] RowSums gradient(const SignedFactors<double>& at) const override {
    return gradient_and_losses(at).first;
  }
  [[nodiscard]] RowSums curvature_product(const SignedFactors<double>& at, const ParameterVector& t) const override {
    SignedFactors<double> parameters = at;
    ParameterVector along = t;
    Archive response(send(Request::Type::curvature_product, false, [&](Archive& body) {
                       write_parameters(body, parameters);
                       body.group("along",
                                  [&] { archive_parameter_vector(body, along, dim(), shape_.rank, shape_.diagonal); });
                     }).sums);
    return read_sums(response);
  }

  /// Losses of the held-out rows at these parameters.
  [[nodiscard]] Losses losses(const SignedFactors<double>& at) const { return gradient_and_losses(at).second; }

 private:
  [[nodiscard]] Index gram_size(bool squares) const { return 1 + (squares ? 2 : 1) * dim(); }

  void write_parameters(Archive& body, SignedFactors<double>& parameters) const {
    body.group("parameters", [&] { archive_parameters(body, parameters, dim(), shape_.rank); });
  }

  [[nodiscard]] std::pair<RowSums, Losses> gradient_and_losses(const SignedFactors<double>& at) const {
    if (last_ && at.intercept == last_->at.intercept && at.weights == last_->at.weights && at.A == last_->at.A &&
        at.squares == last_->at.squares)
      return last_->response;
    SignedFactors<double> parameters = at;
    Archive response(
        send(Request::Type::gradient, false, [&](Archive& body) { write_parameters(body, parameters); }).sums);
    last_ = Last{at, {read_sums(response), Losses(response)}};
    return last_->response;
  }

  [[nodiscard]] RowSums read_sums(Archive& response) const {
    RowSums sums;
    sums.archive(response, dim(), shape_.rank + 1, shape_.diagonal != Diagonal::tied);
    return sums;
  }

  template <typename WriteBody>
  Statistics send(Request::Type type, bool squares, WriteBody&& write_body) const {
    Request request;
    request.type = type;
    request.held_out_use = held_out_use_;
    request.has_squares = squares;
    return requests_(request, [&](Archive& body) {
      bool has_scales = !scales_.empty();
      Scales scales = scales_;
      body.number("has_scales", has_scales);
      if (has_scales) body.vector("scales", scales, dim());
      write_body(body);
    });
  }
  [[nodiscard]] Statistics send(Request::Type type, bool squares = false) const {
    return send(type, squares, [](Archive&) {});
  }

  /// The last gradient and its losses. gradient() and losses() are often called for the same parameters.
  struct Last {
    SignedFactors<double> at;
    std::pair<RowSums, Losses> response;
  };

  WorkerRequests& requests_;
  ModelShape shape_;
  Scales scales_;
  Request::HeldOutUse held_out_use_;
  mutable std::optional<Last> last_;
};

}  // namespace dyad
