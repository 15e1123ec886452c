#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include <dyad/data_error.h>
#include <dyad/parts.h>

#include "distributed/message.h"
#include "distributed/worker_request.h"
#include "encoding/clip_outliers.h"
#include "encoding/sources/row_reader.h"
#include "training/state/train_state.h"

namespace dyad {
namespace {

const char* const worker_model_name = "the model";
const char* const request_name = "the question";

}  // namespace

/// Handles one request at a time. Rows that the request does not use are not encoded.
class Part::State {
 public:
  State(const std::string& model, int threads)
      : file_(ModelFile::from_bytes(model, worker_model_name)),
        posterior_(SavedPosterior::load(file_, worker_model_name)),
        pool_(threads),
        request_(make_worker_request(context(), question_)) {}

  void ask(const std::string& bytes) {
    Message message = Message::from_bytes(bytes, "question", request_name);
    fingerprint_ = fingerprint(bytes);
    question_ = Question();
    rows_ = 0;
    Archive request(std::move(message.arrays));
    try {
      question_.archive(request);
      request_ = make_worker_request(context(), question_);
      request_->read_body(request);
    } catch (const std::runtime_error& error) {
      throw DataError(request_name, 0, 0, error.what());
    }
  }

  void add(const MemoryRows& rows, std::span<const std::uint64_t> hashes) {
    if (static_cast<Index>(hashes.size()) != rows.count)
      throw std::invalid_argument("there must be one hash for each row");
    // Readers skip rows of weight 0.
    std::vector<double> weights(hashes.size());
    std::vector<std::uint8_t> uses;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const auto use = use_of(hashes[i]);
      weights[i] = use == WorkerRequest::unused ? 0 : rows.weights.empty() ? 1 : rows.weights[i];
      if (weights[i] > 0) uses.push_back(use);
    }
    if (uses.empty()) return;
    rows_ += static_cast<double>(std::count(uses.begin(), uses.end(), WorkerRequest::used));
    MemoryRows used = rows;
    used.weights = weights;
    DataOptions data;
    data.memory = &used;
    RowReader<double> reader(
        file_.features,
        {.data = data, .columns = {}, .unknown = TableEncoder::Unknown::is_left_out, .reads_ahead = false});
    RowBlock<double> block;
    std::span<const std::uint8_t> left = uses;
    while (reader.next(block) == RowReader<double>::Next::block) {
      const auto count = static_cast<std::size_t>(block.count());
      double length = posterior_.usual_length;
      double reach = file_.features.target.reach;
      (void)clip_outliers(block, file_.features.target.task, length, reach);
      request_->add(block, left.first(count));
      left = left.subspan(count);
    }
  }

  Statistics answer() {
    Archive response;
    request_->write(response);
    TargetSums losses = request_->losses();
    response.group("losses", [&] { losses.archive(response); });
    response.number("rows", rows_);
    Statistics result;
    result.model = fingerprint_;
    result.sums = response.take();
    result.least = request_->least_target();
    result.most = request_->most_target();
    return result;
  }

 private:
  [[nodiscard]] WorkerContext context() { return {file_.features.target, posterior_.filter, pool_}; }

  [[nodiscard]] std::uint8_t use_of(std::uint64_t hash) const {
    if (question_.counts(hash)) return WorkerRequest::used;
    return request_->needs_held_out() && question_.is_held_out(hash) ? WorkerRequest::held_out : WorkerRequest::unused;
  }

  ModelFile file_;
  SavedPosterior posterior_;
  ThreadPool pool_;
  Question question_;
  std::string fingerprint_;  ///< of the request
  double rows_ = 0;          ///< that the request uses, without held-out rows
  std::unique_ptr<WorkerRequest> request_;
};

Part::Part(const std::string& model, int threads) : state_(std::make_unique<State>(model, threads)) {}
Part::Part(Part&& other) noexcept = default;
Part& Part::operator=(Part&& other) noexcept = default;
Part::~Part() = default;
void Part::ask(const std::string& question) { state_->ask(question); }
void Part::add(const MemoryRows& rows, std::span<const std::uint64_t> hashes) { state_->add(rows, hashes); }
Statistics Part::answer() const { return state_->answer(); }

}  // namespace dyad
