#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/workers.h"
#include "fit/race.h"
#include "kalman/filter.h"
#include "kalman/phase_search.h"
#include "moment/learner.h"
#include "newton/gauss_newton.h"
#include "rows/kept_rows.h"

namespace dyad {

/// Shares of the targets' variance that the weights and the interactions may explain before any data: a prior.
struct PriorShares {
  double weights = 0;
  double factors = 0;
};

/// What to race, the likeliest first; the last one allows hardly more than the mean of the targets.
inline const std::vector<PriorShares> usual_priors{{0.5, 0.03}, {0.5, 0.5},   {1.5, 0.03}, {1.5, 0.5},    {5, 0.03},
                                                   {5, 0.5},    {0.15, 0.03}, {0.15, 0.5}, {0.01, 0.0001}};

struct StreamOptions {
  KalmanOptions kalman;
  std::optional<MomentOptions> moment;    ///< where features are dense and targets are numbers: a start, and a watch
  std::optional<Index> batch;             ///< of the moments, unless the usual
  bool features_are_independent = false;  ///< so that every step of the moments can be taken whole
  std::vector<PriorShares> priors = usual_priors;  ///< starts from nothing, one for each
  bool standardised = true;    ///< features have the scale 1; else it is found from the rows that show them
  double memory = 0;           ///< bytes for rows that are kept at the start, to be solved by Gauss-Newton
  double most_work = 2e10;     ///< numbers that all looks at the kept rows together may touch
  bool sign_restarts = false;  ///< solve them from other numbers of positive factors, too
  int threads = 0;             ///< 0: all cores
  std::function<bool()> interrupted;
};

/// One pass that tunes itself: Kalman filters from several starts race each other. Starts are nothing but small random
/// factors, with several priors; the moments of the rows; the first rows, where they may be kept. The moments go on
/// beside the champion, and take over where they predict better: a direction that it missed shows there.
template <typename Scalar>
class StreamLearner {
 public:
  explicit StreamLearner(StreamOptions options);

  /// Looks at the first rows and enters the starts for such data. The first learn() does it otherwise.
  void start(const Rows<Scalar>& rows);

  /// Predicts each row before it is learned.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  void grow(Index dim, Index left_dim);

  /// As in KalmanOptions.
  void set_range(double low, double high);

  /// Solves what was kept so far, and keeps no more.
  void stop_keeping();

  [[nodiscard]] Model<Scalar> model() const { return race_.champion().model(); }
  [[nodiscard]] const KalmanFilter<Scalar>& filter() const { return race_.champion(); }
  [[nodiscard]] double noise_variance() const { return race_.champion().noise_variance(); }
  [[nodiscard]] Index extra_row_reads() const { return extra_row_reads_; }

  [[nodiscard]] std::string plan() const;   ///< one line: what it will do with such data, and why
  [[nodiscard]] std::string story() const;  ///< one line: where the present model comes from

  void archive(Archive& archive);

 private:
  using Origin = typename Race<Scalar>::Origin;

  void meet(const Rows<Scalar>& rows);
  [[nodiscard]] Index rows_until_decision() const;
  void follow_moments(const Rows<Scalar>& rows, std::span<const Scalar> predictions);
  void keep(const Rows<Scalar>& rows);
  void solve_kept_rows();
  [[nodiscard]] bool can_keep(double attempt) const;
  void decide();
  void set_bounds();
  void enter_copy_with_turned_factors();

  [[nodiscard]] Index unknowns() const;
  [[nodiscard]] Index rows_to_keep(double attempt) const;
  [[nodiscard]] std::vector<double> inverse_scales() const;

  StreamOptions options_;
  Workers workers_;
  Race<Scalar> race_;
  std::optional<MomentLearner<Scalar>> moments_;
  std::optional<PhaseSearch<Scalar>> search_;
  std::unique_ptr<KeptRows<Scalar>> kept_;
  Prior prior_;                 ///< the middle of the race
  std::vector<double> scales_;  ///< of features that have shown themselves; else 0
  double typical_scale_ = 0;
  bool started_ = false;
  bool sparse_ = false;
  Index rows_ = 0;
  Index next_decision_ = 0;
  Index next_turn_ = 0;
  std::size_t attempt_ = 0;
  std::optional<SignedFactors<Scalar>> last_fit_;  ///< of the kept rows
  double work_ = 0;                                ///< that looks at the kept rows have cost
  std::optional<Index> exact_rows_;
  Index extra_row_reads_ = 0;
  double target_variance_ = 1;
  double least_target_ = 0;
  double most_target_ = 0;
  Index moment_steps_ = 0;
  double moment_squares_ = 0;    ///< of the moments' residuals since their last step
  double champion_squares_ = 0;  ///< of the champion's on the same rows
  double compared_rows_ = 0;
};

/// The same shape for other solvers.
KalmanOptions kalman_options(const MomentOptions& shape);
NewtonOptions newton_options(const KalmanOptions& shape);

/// Numbers that a model has to learn: of M, kd - k(k-1)/2 or k(d1 + d2 - k), and w, the squares and b.
Index count_unknowns(Index dim, Index left_dim, Index rank, bool linear, Diagonal diagonal, bool intercept);

}  // namespace dyad
