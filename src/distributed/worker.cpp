#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <dyad/distributed.h>
#include <dyad/error.h>

#include "distributed/message.h"
#include "distributed/request_handler.h"
#include "encoding/clip_outliers.h"
#include "encoding/sources/row_reader.h"
#include "training/state/train_state.h"

namespace dyad {
namespace {

const char* const worker_model_name = "the model";
const char* const request_name = "the request";

}  // namespace

/// Handles one request at a time. Rows that the request does not use are not encoded. Not thread-safe.
class Worker::State {
 public:
  State(const std::string& model, int threads)
      : file_(ModelFile::from_bytes(model, worker_model_name)), pool_(threads) {
    if (!file_.anova) posterior_ = SavedPosterior::load(file_, worker_model_name);
    request_.type = file_.anova ? Request::Type::anova_sums : Request::Type::survey;
    handler_ = make_request_handler(context(), request_);
  }

  void handle(const std::string& bytes) {
    Message message = Message::from_bytes(bytes, "question", request_name);
    fingerprint_ = fingerprint(bytes);
    request_ = Request();
    rows_ = 0;
    Archive request(std::move(message.arrays));
    try {
      request_.archive(request);
      handler_ = make_request_handler(context(), request_);
      handler_->read_body(request);
    } catch (const std::runtime_error& error) {
      throw DataError(request_name, 0, 0, error.what());
    }
  }

  void add_rows(const DatasetView& rows, std::span<const std::uint64_t> hashes) {
    if (static_cast<Index>(hashes.size()) != rows.count)
      throw std::invalid_argument(
          "hashes must have one entry per row; pass the result of hash_rows() for the same rows");
    // Unused rows get weight 0, so that the reader skips them.
    std::vector<double> weights(hashes.size());
    std::vector<std::uint8_t> uses;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const auto use = use_of(hashes[i]);
      weights[i] = use == RequestHandler::unused ? 0 : rows.weights.empty() ? 1 : rows.weights[i];
      if (weights[i] > 0) uses.push_back(use);
    }
    if (uses.empty()) return;
    rows_ += static_cast<double>(std::count(uses.begin(), uses.end(), RequestHandler::used));
    DatasetView used = rows;
    used.weights = weights;
    DataOptions data;
    data.dataset = &used;
    RowReader<double> reader(
        file_.features,
        {.data = data, .columns = {}, .unknown = TableEncoder::UnknownFeatures::ignore, .reads_ahead = false});
    RowBlock<double> block;
    std::span<const std::uint8_t> remaining = uses;
    while (reader.next(block) == RowReader<double>::Next::block) {
      const auto count = static_cast<std::size_t>(block.count());
      // clip_outliers() may raise its thresholds. Each block starts with those of the model, so that the sums do not
      // depend on the preceding blocks.
      double median_squared_norm = posterior_ ? posterior_->median_squared_norm : 0;
      double clip_limit = file_.features.target.clip_limit;
      (void)clip_outliers(block, file_.features.target.task, median_squared_norm, clip_limit);
      handler_->add(block, remaining.first(count));
      remaining = remaining.subspan(count);
    }
  }

  Statistics response() {
    Archive sums;
    handler_->write(sums);
    TargetSums losses = handler_->losses();
    sums.group("losses", [&] { losses.archive(sums); });
    sums.number("rows", rows_);
    Statistics result;
    result.model = fingerprint_;
    result.sums = sums.take();
    result.min_target = handler_->min_target();
    result.max_target = handler_->max_target();
    return result;
  }

 private:
  [[nodiscard]] WorkerContext context() { return {file_.features, posterior_ ? &posterior_->filter : nullptr, pool_}; }

  /// Returns the RequestHandler::RowUse of the row with this hash.
  [[nodiscard]] std::uint8_t use_of(std::uint64_t hash) const {
    if (request_.uses_row(hash)) return RequestHandler::used;
    return handler_->needs_held_out() && request_.is_held_out(hash) ? RequestHandler::held_out : RequestHandler::unused;
  }

  ModelFile file_;
  std::optional<SavedPosterior> posterior_;  ///< null: ANOVA model
  ThreadPool pool_;
  Request request_;
  std::string fingerprint_;  ///< of the request
  double rows_ = 0;          ///< number of rows in the sums, without held-out rows
  std::unique_ptr<RequestHandler> handler_;
};

Worker::Worker(const std::string& model, int threads) : state_(std::make_unique<State>(model, threads)) {}
Worker::Worker(Worker&& other) noexcept = default;
Worker& Worker::operator=(Worker&& other) noexcept = default;
Worker::~Worker() = default;
void Worker::handle(const std::string& request) { state_->handle(request); }
void Worker::add_rows(const DatasetView& rows, std::span<const std::uint64_t> hashes) {
  state_->add_rows(rows, hashes);
}
Statistics Worker::response() const { return state_->response(); }

}  // namespace dyad
