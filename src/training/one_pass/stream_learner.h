#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "solvers/kalman/phase_search.h"
#include "solvers/moment/moment_learner.h"
#include "training/one_pass/buffered_start.h"
#include "training/one_pass/data_summary.h"
#include "training/one_pass/feature_scales.h"
#include "training/one_pass/filter_selection.h"

namespace dyad {

struct StreamOptions {
  KalmanOptions kalman;
  std::optional<MomentOptions> moment;    ///< where features are dense and targets are numbers: a start, and a watch
  std::optional<Index> batch;             ///< of the moments, unless the usual
  bool features_are_independent = false;  ///< so that every step of the moments can be taken whole
  std::vector<PriorShares> priors = usual_priors;  ///< starts from nothing, one for each
  bool standardised = true;  ///< features have the scale 1; else it is found from the rows that show them
  KeepOptions keep;          ///< rows at the start, to be solved by Gauss-Newton
};

/// One pass that tunes itself: Kalman filters from several starts race each other. Starts are nothing but small random
/// factors, with several priors; the moments of the rows; the first rows, where they may be kept. The moments go on
/// beside the best candidate, and take over where they predict better: a direction that it missed shows there.
template <typename Scalar>
class StreamLearner {
 public:
  /// Does not own the pool.
  StreamLearner(StreamOptions options, ThreadPool& pool);

  /// Looks at the first rows and enters the starts for such data. The first learn() does it otherwise.
  void start(const Rows<Scalar>& rows);

  /// Predicts each row before it is learned.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  void grow(Index dim, Index left_dim);

  /// As in KalmanOptions.
  void set_likelihood(const LikelihoodPointer& likelihood);

  /// Solves what was kept so far, and keeps no more.
  void stop_keeping();

  /// What all rows so far, read again, have made of it.
  void promote(KalmanFilter<Scalar> filter);

  [[nodiscard]] Model<Scalar> model() const { return selection_.best_filter().model(); }
  [[nodiscard]] const StreamOptions& options() const { return options_; }
  [[nodiscard]] const KalmanFilter<Scalar>& filter() const { return selection_.best_filter(); }
  [[nodiscard]] double noise_variance() const { return selection_.best_filter().noise_variance(); }
  /// Rows of the kept block in this run, where it gave a start.
  [[nodiscard]] Index solved_rows() const { return solved_rows_; }
  /// Whether the kept block gave the model exactly, and no later row has contradicted it.
  [[nodiscard]] bool fits_exactly() const { return exact_rows_ > 0; }
  /// Features that are left out because powers of their values overflow or underflow.
  [[nodiscard]] Index left_out_features() const { return scales_.left_out(); }
  [[nodiscard]] Index extra_row_reads() const { return keeping_.extra_row_reads(); }

  [[nodiscard]] std::string plan() const;    ///< one line: what it will do with such data, and why
  [[nodiscard]] std::string origin() const;  ///< one line: where the present model comes from

  void archive(Archive& archive);

 private:
  using Origin = typename FilterSelection<Scalar>::Origin;

  void add_new_features(const Rows<Scalar>& rows);
  void update_target_bounds(const Rows<Scalar>& rows);
  void follow_search(const Rows<Scalar>& rows);
  void follow_moments(const Rows<Scalar>& rows, std::span<const Scalar> predictions);
  void enter(std::optional<typename BufferedStart<Scalar>::Start> start);
  Index predict_agreeing(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;
  void withdraw_exact_start(const Rows<Scalar>& contradicting);
  void decide();
  void enter_copy_with_turned_factors();

  StreamOptions options_;
  ThreadPool& pool_;
  FilterSelection<Scalar> selection_;
  FeatureScales scales_;
  BufferedStart<Scalar> keeping_;
  std::optional<MomentLearner<Scalar>> moments_;
  std::optional<PhaseSearch<Scalar>> search_;
  Prior prior_;  ///< the likeliest one of the race
  bool started_ = false;
  Index rows_ = 0;
  Index next_decision_ = 0;
  Index next_turn_ = 0;
  Index solved_rows_ = 0;  ///< of the kept block, where it gave a start
  Index exact_rows_ = 0;  ///< of the kept block, where it gave the model exactly; later rows that agree are not learned
  double least_target_ = 0;
  double most_target_ = 0;
  Index moment_steps_ = 0;
  double moment_squares_ = 0;    ///< of the moments' residuals since their last step
  double champion_squares_ = 0;  ///< of the best candidate's on the same rows
  double compared_rows_ = 0;
};

/// The same shape for the filters.
KalmanOptions kalman_options(const MomentOptions& moment);

}  // namespace dyad
