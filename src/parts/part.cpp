#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <dyad/data_error.h>
#include <dyad/parts.h>

#include "base/logistic.h"
#include "feed/row_reader.h"
#include "fit/metrics.h"
#include "fit/tame.h"
#include "fit/train_settings.h"
#include "fit/train_solver.h"
#include "model/model_file.h"
#include "parts/message.h"
#include "parts/question.h"
#include "rows/kept_rows.h"
#include "stream/kept_start.h"

namespace dyad {
namespace {

const char* const question_name = "the question";

using About = Question::About;

}  // namespace

class Part::State {
 public:
  State(const std::string& model, int threads)
      : file_(ModelFile::from_bytes(model, "the model")), workers_(threads), base_(posterior_of(file_, "the model")) {
    if (const auto found = file_.state.find("usual_length"); found != file_.state.end() && found->second.size() == 1)
      usual_length_ = found->second.front();
  }

  void ask(const std::string& bytes) {
    Message message = Message::from_bytes(bytes, "question", question_name);
    about_ = fingerprint(bytes);
    question_ = Question();
    rows_ = 0;
    least_ = Target().least_seen;
    most_ = Target().most_seen;
    Archive asked(std::move(message.arrays));
    try {
      question_.archive(asked);
      read_body(asked);
    } catch (const std::runtime_error& error) {
      throw DataError(question_name, 0, 0, error.what());
    }
    begin();
  }

  void add(const MemoryRows& rows, std::span<const std::uint64_t> all_hashes) {
    if (static_cast<Index>(all_hashes.size()) != rows.count)
      throw std::invalid_argument("there must be one hash for each row");
    // Rows that nobody asks for have no weight, and rows without weight are not read.
    std::vector<double> weights(all_hashes.size());
    std::vector<Mark> marks;
    for (std::size_t i = 0; i < all_hashes.size(); ++i) {
      const Mark mark = mark_of(all_hashes[i]);
      weights[i] = mark == idle ? 0 : rows.weights.empty() ? 1 : rows.weights[i];
      if (weights[i] > 0) marks.push_back(mark);
    }
    if (marks.empty()) return;
    MemoryRows asked = rows;
    asked.weights = weights;
    DataOptions data;
    data.memory = &asked;
    RowReader<double> reader(file_.features,
                             {.data = data, .columns = {}, .unknown = TableEncoder::Unknown::is_left_out});
    RowBlock<double> block;
    std::size_t first = 0;
    while (reader.next(block) == RowReader<double>::Next::block) {
      marks_.assign(marks.begin() + static_cast<std::ptrdiff_t>(first),
                    marks.begin() + static_cast<std::ptrdiff_t>(first) + block.count());
      first += marks_.size();
      double length = usual_length_;
      double reach = target_.reach;
      (void)tame(block, target_.task, length, reach);
      look_at(block);
    }
  }

  Statistics answer() {
    look_at_waiting();
    Statistics result;
    Archive archive;
    archive_answer(archive);
    archive.number("rows", rows_);
    result.model = about_;
    result.sums = archive.take();
    result.least = least_;
    result.most = most_;
    return result;
  }

 private:
  enum Mark : std::uint8_t { idle, counts, judges };

  [[nodiscard]] Mark mark_of(std::uint64_t hash) const {
    if (question_.counts(hash)) return counts;
    return question_.about == About::slopes && question_.is_held_out(hash) ? judges : idle;
  }

  [[nodiscard]] const ModelShape& shape() const { return base_.options().shape; }
  [[nodiscard]] Index width() const { return shape().rank + 1; }
  [[nodiscard]] bool untied() const { return shape().diagonal != Diagonal::tied; }
  [[nodiscard]] Index product_size() const { return 1 + (question_.squares ? 2 : 1) * shape().dim; }

  void read_body(Archive& asked) {
    const Index dim = shape().dim;
    const Index rank = shape().rank;
    scales_.clear();
    filter_.reset();
    if (question_.about == About::pass || question_.about == About::precisions) {
      filter_.emplace(base_);
      asked.group("filter", [&] { filter_->archive(asked); });
      if (!question_.has_range) filter_->set_likelihood(make_likelihood(file_.features.target.task));
      before_ = filter_->naturals();
      noise_before_ = filter_->noise_variance();
      return;
    }
    if (question_.about == About::survey) return;
    bool has_scales = false;
    asked.number("has_scales", has_scales);
    if (has_scales) asked.vector("scales", scales_, dim);
    if (question_.about != About::slopes && question_.about != About::bends) return;
    asked.group("parameters", [&] { archive_parameters(asked, parameters_, dim, rank); });
    if (question_.about == About::bends)
      asked.group("along", [&] { archive_direction(asked, along_, dim, rank, shape().diagonal); });
  }

  void begin() {
    const Index dim = shape().dim;
    newton_ = newton_options(base_.options());
    target_ = file_.features.target;
    if (!question_.has_range) {
      newton_.likelihood = make_likelihood(target_.task);
      target_.low = Target().low;
      target_.high = Target().high;
      target_.least_seen = Target().least_seen;
      target_.most_seen = Target().most_seen;
    }
    waiting_ = {};
    waiting_judges_ = {};
    squares_.setZero(dim);
    counts_.setZero(dim);
    targets_ = {};
    sums_.set_zero(dim, width(), untied());
    losses_ = {};
    products_.setZero(question_.about == About::products ? product_size() : 0,
                      question_.about == About::products ? product_size() : 0);
    diagonal_.setZero(question_.about == About::diagonal ? product_size() : 0);
  }

  /// A look takes as long as the model is large, whatever the rows: rows wait until they are worth it.
  void look_at(RowBlock<double>& block) {
    scale(block);
    const Rows<double> rows = block.view();
    rows_ += static_cast<double>(std::count(marks_.begin(), marks_.end(), counts));
    if (question_.about == About::survey) return survey(rows);
    if (question_.about == About::pass) return learn(rows);
    waiting_.append(rows.only(marks_, counts));
    waiting_judges_.append(rows.only(marks_, judges));
    if (waiting_.entries() > static_cast<double>(shape().dim * width())) look_at_waiting();
  }

  void look_at_waiting() {
    KeptRows<double> counting = std::exchange(waiting_, {});
    KeptRows<double> judging = std::exchange(waiting_judges_, {});
    if (judging.count() > 0) judge(judging.view(shape().dim));
    if (counting.count() == 0) return;
    const Rows<double> rows = counting.view(shape().dim);
    if (question_.about == About::precisions) return filter_->narrow(rows);
    const LooksInMemory<double> looks(rows, newton_, workers_);
    if (question_.about == About::targets) targets_.add(looks.targets());
    if (question_.about == About::products) products_ += looks.products(question_.squares);
    if (question_.about == About::diagonal) diagonal_ += looks.product_diagonal(question_.squares);
    if (question_.about == About::slopes) sums_.add(looks.slopes(parameters_));
    if (question_.about == About::bends) sums_.add(looks.bends(parameters_, along_));
  }

  void scale(RowBlock<double>& block) const {
    if (scales_.empty()) return;
    const auto by = [&](std::size_t j) { return scales_[j] > 0 ? 1 / scales_[j] : 0; };
    for (std::size_t e = 0; e < block.values.size(); ++e)
      block.values[e] *=
          by(block.dense ? e % static_cast<std::size_t>(block.dim) : static_cast<std::size_t>(block.columns[e]));
  }

  void survey(const Rows<double>& rows) {
    const Target& target = file_.features.target;
    for (Index i = 0; i < rows.count(); ++i) {
      rows.for_each_entry(i, [&](Index j, double x) {
        squares_[j] += x * x;
        counts_[j] += x != 0 ? 1 : 0;
      });
      const double y = target.in_units(rows.targets()[static_cast<std::size_t>(i)]);
      least_ = std::min(least_, y);
      most_ = std::max(most_, y);
    }
  }

  /// The loss of a prediction, in the target's units; what has run away is bad, but still a number to add.
  [[nodiscard]] double loss(double y, double f) const { return bounded(target_.score(y, f)); }
  [[nodiscard]] static double bounded(double loss) { return loss < huge ? loss : huge; }

  void learn(const Rows<double>& rows) {
    predictions_.resize(static_cast<std::size_t>(rows.count()));
    filter_->learn(rows, predictions_);
    add_losses(rows);
  }

  void judge(const Rows<double>& rows) {
    predictions_.resize(static_cast<std::size_t>(rows.count()));
    parameters_.predict(rows, predictions_);
    add_losses(rows);
  }

  void add_losses(const Rows<double>& rows) {
    for (std::size_t i = 0; i < predictions_.size(); ++i) {
      const double weight = rows.weight(static_cast<Index>(i));
      const double y = rows.targets()[i];
      const double f = predictions_[i];
      if (weight > 0) losses_.add({weight, weight * loss(y, f), weight * bounded((y - f) * (y - f))});
    }
  }

  void archive_answer(Archive& archive) {
    const Index dim = shape().dim;
    switch (question_.about) {
      case About::survey:
        archive.matrix("squares", squares_, dim, 1);
        archive.matrix("counts", counts_, dim, 1);
        break;
      case About::pass:
      case About::precisions: {
        // A filter that has run away has gained nothing; the losses tell.
        const bool is_finite = filter_->is_finite();
        Naturals gained = is_finite ? filter_->naturals() : before_;
        gained.add(-1, before_);
        gained.archive(archive, filter_->naturals_count());
        double noise = rows_ * (is_finite ? filter_->noise_variance() : noise_before_);
        archive.number("noise", noise);
        break;
      }
      case About::targets:
        targets_.archive(archive);
        break;
      case About::products:
        archive.matrix("products", products_, product_size(), product_size());
        break;
      case About::diagonal:
        archive.matrix("diagonal", diagonal_, product_size(), 1);
        break;
      case About::slopes:
      case About::bends:
        // A step that leads nowhere must be seen to do so.
        if (!std::isfinite(sums_.loss + sums_.features.sum() + sums_.squares.sum())) {
          sums_.set_zero(dim, width(), untied());
          sums_.loss = huge;
        }
        sums_.archive(archive, dim, width(), untied());
        break;
    }
    archive.group("losses", [&] { losses_.archive(archive); });
  }

  static constexpr double huge = 1e100;

  ModelFile file_;
  double usual_length_ = 0;
  Workers workers_;
  KalmanFilter<double> base_;
  std::string about_;
  Question question_;
  std::vector<std::uint8_t> marks_;
  std::vector<double> predictions_;

  std::optional<KalmanFilter<double>> filter_;
  Naturals before_;
  double noise_before_ = 0;
  Target target_;
  KeptRows<double> waiting_;
  KeptRows<double> waiting_judges_;
  NewtonOptions newton_;
  Scales scales_;
  SignedFactors<double> parameters_;
  Direction<double> along_;

  double rows_ = 0;
  double least_ = 0;
  double most_ = 0;
  Vector<double> squares_;
  Vector<double> counts_;
  TargetSums targets_;
  TargetSums losses_;  ///< weight, losses and squared residuals, of rows as they are learned, or held out
  RowSums<double> sums_;
  Small<double> products_;
  Vector<double> diagonal_;
};

Part::Part(const std::string& model, int threads) : state_(std::make_unique<State>(model, threads)) {}
Part::Part(Part&& other) noexcept = default;
Part& Part::operator=(Part&& other) noexcept = default;
Part::~Part() = default;
void Part::ask(const std::string& question) { state_->ask(question); }
void Part::add(const MemoryRows& rows, std::span<const std::uint64_t> hashes) { state_->add(rows, hashes); }
Statistics Part::answer() const { return state_->answer(); }

}  // namespace dyad
