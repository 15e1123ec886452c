#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <dyad/model.h>
#include <dyad/shape.h>
#include <dyad/types.h>

namespace dyad {

/// Options of Learner.
struct LearnerOptions {
  ModelShape shape;                                ///< dimensions and parameters of the model; see ModelShape::of
  Task task = Task::regression;                    ///< classification: targets above 0 are the positive class
  std::optional<std::pair<double, double>> range;  ///< regression: targets are censored at these bounds
  double half_life = 0;    ///< rows after which the weight of a row is halved, for drifting data; 0: no forgetting
  double memory = 0;       ///< bytes for buffered first rows, from which the start is estimated; 0: none
  int threads = 1;         ///< 0: all cores
  std::uint64_t seed = 1;  ///< of the random start

  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

/// Online learner for second-order models. It has no step size and uses O(rank x dim) memory for any number of rows.
/// Rows can be learned one at a time or in blocks, and predictions are available at any time.
///
///     dyad::LearnerOptions options;
///     options.shape.dim = 20;
///     dyad::Learner<double> learner(options);
///     learner.learn(rows);                  // dyad::Rows<double> with targets
///     learner.predict(new_rows, values);    // std::span<double>, one per row
///
/// Const member functions may run concurrently; the others need exclusive access.
template <typename Scalar>
class Learner {
 public:
  /// \throws std::invalid_argument for invalid options
  explicit Learner(const LearnerOptions& options);
  ~Learner();
  Learner(Learner&&) noexcept;             ///< moves the learner
  Learner& operator=(Learner&&) noexcept;  ///< moves the learner

  /// Updates the model with the rows. The scales of the features are estimated from the first block, which should
  /// contain at least 50 rows. Continuous features should be centered.
  /// \param rows         rows with targets
  /// \param predictions  unless empty, receives the prediction of each row before the model learned it: the target, or
  ///                     the probability of the positive class
  /// \throws std::invalid_argument if sizes disagree, or if a value is not finite or exceeds max_abs_value; the learner
  ///         then keeps the state that it had before the call
  ///
  /// Complexity: O(rank) per non-zero, times the number of candidate filters while the prior is selected.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions = {});

  /// Predicts the rows.
  /// \param rows         rows to predict; features without learned rows contribute 0 to predictions and their prior
  ///                     variance to deviations
  /// \param predictions  receives the target, or the probability of the positive class
  /// \param deviations   unless empty, receives the standard deviation of the target including noise; classes: of the
  ///                     probability
  /// \param unseen       unless empty: for each row, the number of unknown features that are not among the dim()
  ///                     features; their prior variance is added to deviations. Must be empty for bilinear models.
  /// \throws std::invalid_argument if sizes disagree
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> deviations = {},
               std::span<const Index> unseen = {}) const;

  /// Appends features with zero parameters and the prior variances.
  /// \param dim       new number of features, not below dim()
  /// \param left_dim  bilinear: new number of features of x
  void grow(Index dim, Index left_dim = 0);

  /// Number of features.
  [[nodiscard]] Index dim() const;
  /// Number of rows learned.
  [[nodiscard]] Index rows() const;
  /// Estimated standard deviation of the noise; infinite before the second row.
  [[nodiscard]] double noise() const;
  /// Returns the model of the target, or of the log-odds. Classes: the constant model until the learned rows give
  /// evidence against it.
  [[nodiscard]] Model<Scalar> model() const;
  /// Returns one line that describes how the model was estimated.
  [[nodiscard]] std::string origin() const;

  /// Serializes options and state in the safetensors format. A learner restored from the bytes gives the same results
  /// as this one. Not const: the call ends the buffering of first rows (`LearnerOptions::memory`) and removes
  /// candidates of the filter selection that are not finite.
  [[nodiscard]] std::string to_bytes();

  /// Restores a learner from the result of to_bytes().
  /// \throws DataError if the bytes are damaged, or of a learner with another scalar type
  static Learner from_bytes(const std::string& bytes);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

extern template class Learner<float>;
extern template class Learner<double>;

}  // namespace dyad
