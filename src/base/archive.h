#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

// The folder base contains the parts that are independent of statistics: archives, the thread pool, files, random
// numbers, hashes and text.

/// Named arrays of numbers that store the training state of an object. number(), choice(), vector() and matrix() save
/// or load, depending on the constructor, so that an object needs only one function for both. Values are stored as
/// double, which represents every float and every integer up to 2^53 exactly. Loading throws std::runtime_error for an
/// array that is missing, has a different size, or contains a number that is not finite.
class Archive {
 public:
  /// Creates an empty archive for saving.
  Archive() = default;
  /// Creates an archive for loading from `saved`.
  explicit Archive(std::map<std::string, std::vector<double>> saved) : arrays_(std::move(saved)), loading_(true) {}

  [[nodiscard]] bool is_loading() const { return loading_; }
  [[nodiscard]] const std::map<std::string, std::vector<double>>& arrays() const { return arrays_; }
  /// Moves the arrays out of the archive.
  [[nodiscard]] std::map<std::string, std::vector<double>> take() { return std::move(arrays_); }

  /// True if the archive contains an array of this name in the current group.
  [[nodiscard]] bool has(const std::string& name) const { return arrays_.contains(prefix_ + name); }

  /// Saves or loads a number. Loading throws for an integer above 2^53 in magnitude.
  template <typename Number>
  void number(const std::string& name, Number& value) {
    static_assert(std::is_arithmetic_v<Number>);
    if (loading_) {
      const double number = find_array(name, 1).front();
      constexpr double max_exact_integer = 9007199254740992;  // 2^53: double has 53 bits of significand
      if (std::is_integral_v<Number> && !(std::abs(number) <= max_exact_integer))
        throw std::runtime_error("the training state has an invalid integer in '" + prefix_ + name +
                                 "': its magnitude exceeds 2^53");
      value = static_cast<Number>(number);
      return;
    }
    arrays_[prefix_ + name] = {static_cast<double>(value)};
  }

  /// Saves or loads a value of an enumeration whose values are 0 to `last`. Loading throws for any other value.
  template <typename Choice>
  void choice(const std::string& name, Choice& value, Choice last) {
    auto ordinal = static_cast<Index>(value);
    number(name, ordinal);
    if (ordinal < 0 || ordinal > static_cast<Index>(last))
      throw std::runtime_error("the training state has an unknown enumeration value in '" + prefix_ + name + "'");
    value = static_cast<Choice>(ordinal);
  }

  /// Saves or loads a vector. `size` is the required size when loading.
  template <typename Number, typename Allocator>
  void vector(const std::string& name, std::vector<Number, Allocator>& values, Index size) {
    if (!loading_) {
      arrays_[prefix_ + name].assign(values.begin(), values.end());
      return;
    }
    const std::vector<double>& numbers = find_array(name, size);
    values.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) values[i] = static_cast<Number>(numbers[i]);
  }

  /// As vector(), for temporary numbers: moves them instead of copying them.
  void temporary(const std::string& name, std::vector<double>& numbers, Index size) {
    if (!loading_)
      arrays_[prefix_ + name] = std::move(numbers);
    else
      numbers = std::move(find_array(name, size));
  }

  /// Saves or loads an Eigen matrix in its storage order. `rows` and `columns` are the required size when loading.
  template <typename Dense>
  void matrix(const std::string& name, Dense& values, Index rows, Index columns) {
    if (!loading_) {
      arrays_[prefix_ + name].assign(values.data(), values.data() + values.size());
      return;
    }
    const std::vector<double>& numbers = find_array(name, rows * columns);
    values.resize(rows, columns);
    for (Index i = 0; i < values.size(); ++i)
      values.data()[i] = static_cast<typename Dense::Scalar>(numbers[static_cast<std::size_t>(i)]);
  }

  /// Calls function() with "prefix." prepended to all names. Groups can be nested.
  template <typename Function>
  void group(const std::string& prefix, Function&& function) {
    const std::string outer = prefix_;
    prefix_ += prefix + ".";
    std::forward<Function>(function)();
    prefix_ = outer;
  }

 private:
  /// Array of this name in the current group. Throws if it is missing, has a different size or is not finite.
  [[nodiscard]] std::vector<double>& find_array(const std::string& name, Index size) {
    const auto found = arrays_.find(prefix_ + name);
    if (found == arrays_.end() || static_cast<Index>(found->second.size()) != size)
      throw std::runtime_error("the training state has no array '" + prefix_ + name + "' of " + std::to_string(size) +
                               " numbers");
    if (!std::all_of(found->second.begin(), found->second.end(), [](double number) { return std::isfinite(number); }))
      throw std::runtime_error("the training state has numbers that are not finite in '" + prefix_ + name + "'");
    return found->second;
  }

  std::map<std::string, std::vector<double>> arrays_;
  std::string prefix_;  ///< of the current group; empty or ending in "."
  bool loading_ = false;
};

}  // namespace dyad
