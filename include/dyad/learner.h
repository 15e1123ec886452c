#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <dyad/data.h>
#include <dyad/model.h>
#include <dyad/shape.h>

namespace dyad {

/// A learner to embed: rows in as they come, one or many at a time, predictions out between them. No step size, nothing
/// to tune; memory does not grow with the rows.
struct LearnerOptions {
  ModelShape shape;                                ///< of any kind: see ModelShape::of
  Task task = Task::regression;                    ///< classification: targets above 0 are the positive class
  std::optional<std::pair<double, double>> range;  ///< that targets cannot leave: those at its ends may stand for more
  double half_life = 0;  ///< rows after which data counts half, for drift; 0: it always counts
  double memory = 0;     ///< bytes for rows to keep and solve at the start
  int threads = 1;       ///< 0: all cores
  std::uint64_t seed = 1;

  /// Throws std::invalid_argument with a sentence that says what is allowed.
  void validate() const;
};

template <typename Scalar>
class Learner {
 public:
  explicit Learner(const LearnerOptions& options);
  ~Learner();
  Learner(Learner&&) noexcept;
  Learner& operator=(Learner&&) noexcept;

  /// Learns the rows. `predictions`, unless empty, gets what each was predicted to be before it was learned: the
  /// target, or the probability of the positive class. Features without a value of 1 or so should be centred; scales
  /// are found from the first rows, which had better come many at a time.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions = {});

  /// `deviations`, unless empty: the standard deviation of the target, noise included; classes: of the probability.
  /// Features that no row has shown contribute nothing to predictions and their prior variance to deviations.
  /// `unseen`, unless empty: for each row, the number of such features that it has beyond those of `rows`; not for
  /// bilinear models.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> deviations = {},
               std::span<const Index> unseen = {}) const;

  /// More features at the end; bilinear: `left_dim` of them are those of x.
  void grow(Index dim, Index left_dim = 0);

  [[nodiscard]] Index dim() const;     ///< features at present
  [[nodiscard]] Index rows() const;    ///< learned so far
  [[nodiscard]] double noise() const;  ///< standard deviation of what the model cannot explain; before the
                                       ///< second row: infinite
  /// Of the target, or of the log-odds. Classes: the constant while learned rows give no evidence against it.
  [[nodiscard]] Model<Scalar> model() const;
  [[nodiscard]] std::string origin() const;  ///< one line: where the model comes from

  /// Serializes options and state in the safetensors layout. A learner made from the bytes learns and predicts the same
  /// numbers as this one. Not const: it ends the buffering of first rows (`LearnerOptions::memory`), and drops
  /// candidates of the filter selection that are not finite.
  [[nodiscard]] std::string to_bytes();

  /// Throws DataError if the bytes were not written by `to_bytes` of a learner with the same scalar type, or are
  /// damaged.
  static Learner from_bytes(const std::string& bytes);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> own_;
};

extern template class Learner<float>;
extern template class Learner<double>;

}  // namespace dyad
