#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

#include <dyad/data_error.h>
#include <dyad/parts.h>

#include "base/logistic.h"
#include "feed/row_reader.h"
#include "fit/metrics.h"
#include "fit/train_settings.h"
#include "fit/train_solver.h"
#include "model/model_file.h"
#include "parts/message.h"
#include "parts/question.h"
#include "stream/kept_start.h"

namespace dyad {
namespace {

const char* const question_name = "the question";

using About = Question::About;

}  // namespace

class Part::State {
 public:
  State(const std::string& model, int threads)
      : file_(ModelFile::from_bytes(model, "the model")), workers_(threads), base_(posterior_of(file_, "the model")) {}

  void ask(const std::string& bytes) {
    Message message = Message::from_bytes(bytes, "question", question_name);
    about_ = fingerprint(bytes);
    question_ = Question();
    answer_ = {};
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
    // Rows without weight are not read.
    std::vector<std::uint64_t> hashes;
    for (std::size_t i = 0; i < all_hashes.size(); ++i)
      if (rows.weights.empty() || rows.weights[i] > 0) hashes.push_back(all_hashes[i]);
    DataOptions data;
    data.memory = &rows;
    RowReader<double> reader(file_.features,
                             {.data = data, .columns = {}, .unknown = TableEncoder::Unknown::is_left_out});
    RowBlock<double> block;
    std::size_t first = 0;
    while (reader.next(block) == RowReader<double>::Next::block) {
      marks_.clear();
      for (Index i = 0; i < block.count(); ++i) {
        const std::uint64_t hash = hashes[first++];
        marks_.push_back(question_.counts(hash) ? counts : question_.is_held_out(hash) ? judges : idle);
      }
      look_at(block);
    }
  }

  [[nodiscard]] Statistics answer() const {
    Statistics result;
    Archive archive;
    State& self = const_cast<State&>(*this);  // an archive that saves changes nothing
    self.archive_answer(archive);
    double rows = rows_;
    archive.number("rows", rows);
    result.model = about_;
    result.sums = archive.take();
    result.least = least_;
    result.most = most_;
    return result;
  }

 private:
  enum Mark : std::uint8_t { idle, counts, judges };

  [[nodiscard]] const KalmanOptions& shape() const { return base_.options(); }
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
      if (!question_.has_range) filter_->set_range(-infinity, infinity);
      before_ = filter_->naturals();
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
    newton_ = newton_options(shape());
    if (!question_.has_range) newton_.low = -(newton_.high = infinity);
    squares_.setZero(dim);
    counts_.setZero(dim);
    targets_ = {};
    sums_.set_zero(dim, width(), untied());
    held_out_ = {};
    products_.setZero(question_.about == About::products ? product_size() : 0,
                      question_.about == About::products ? product_size() : 0);
    diagonal_.setZero(question_.about == About::diagonal ? product_size() : 0);
  }

  void look_at(RowBlock<double>& block) {
    scale(block);
    const Rows<double> rows = block.view();
    const Rows<double> counting = rows.only(marks_, counts);
    rows_ += static_cast<double>(std::count(marks_.begin(), marks_.end(), counts));
    switch (question_.about) {
      case About::survey:
        survey(rows);
        break;
      case About::pass:
        learn(rows, counting);
        break;
      case About::precisions:
        filter_->narrow(counting);
        break;
      case About::targets:
        targets_.add(LooksInMemory<double>(counting, newton_, workers_).targets());
        break;
      case About::products:
        products_ += LooksInMemory<double>(counting, newton_, workers_).products(question_.squares);
        break;
      case About::diagonal:
        diagonal_ += LooksInMemory<double>(counting, newton_, workers_).product_diagonal(question_.squares);
        break;
      case About::slopes:
        sums_.add(LooksInMemory<double>(counting, newton_, workers_).slopes(parameters_));
        judge(rows);
        break;
      case About::bends:
        sums_.add(LooksInMemory<double>(counting, newton_, workers_).bends(parameters_, along_));
        break;
    }
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

  /// The loss of a prediction, in the target's units.
  [[nodiscard]] double loss(double y, double f) const {
    const Target& target = file_.features.target;
    if (target.task == Task::classification) return log_loss(y > 0 ? 1 : 0, logistic(f));
    const double residual = target.in_units(y) - target.prediction_in_units(f);
    return residual * residual;
  }

  /// What has run away is bad, but still a number to add.
  [[nodiscard]] static double bounded(double loss) {
    constexpr double most = 1e100;
    return loss < most ? loss : most;
  }

  void learn(const Rows<double>& rows, const Rows<double>& counting) {
    predictions_.resize(static_cast<std::size_t>(rows.count()));
    filter_->learn(counting, predictions_);
    add_losses(rows, counts);
  }

  void judge(const Rows<double>& rows) {
    if (std::count(marks_.begin(), marks_.end(), judges) == 0) return;
    predictions_.resize(static_cast<std::size_t>(rows.count()));
    parameters_.predict(rows, predictions_);
    add_losses(rows, judges);
  }

  void add_losses(const Rows<double>& rows, Mark mark) {
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      if (marks_[i] != mark) continue;
      const double weight = rows.weight(static_cast<Index>(i));
      const double y = rows.targets()[i];
      const double f = predictions_[i];
      held_out_.add({weight, weight * bounded(loss(y, f)), weight * bounded((y - f) * (y - f))});
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
        double noise = rows_ * (is_finite ? filter_->noise_variance() : base_.noise_variance());
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
        sums_.archive(archive, dim, width(), untied());
        break;
    }
    archive.group("losses", [&] { held_out_.archive(archive); });
  }

  static constexpr double infinity = std::numeric_limits<double>::infinity();

  ModelFile file_;
  Workers workers_;
  KalmanFilter<double> base_;
  std::string about_;
  Question question_;
  std::vector<std::uint8_t> marks_;
  std::vector<double> predictions_;

  std::optional<KalmanFilter<double>> filter_;
  Naturals before_;
  NewtonOptions newton_;
  Scales scales_;
  SignedFactors<double> parameters_;
  Direction<double> along_;

  Statistics answer_;
  double rows_ = 0;
  double least_ = 0;
  double most_ = 0;
  Vector<double> squares_;
  Vector<double> counts_;
  TargetSums targets_;
  TargetSums held_out_;  ///< weight, losses and squared residuals, of rows as they are learned, or held out
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
