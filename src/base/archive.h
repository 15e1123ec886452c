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

/// Named arrays of numbers: the state of an object, from which it continues exactly. One function both
/// saves and loads, so the two cannot differ. All numbers are kept as double, which holds every float, and every whole
/// number that counts rows.
class Archive {
 public:
  Archive() = default;  ///< to save
  explicit Archive(std::map<std::string, std::vector<double>> saved) : arrays_(std::move(saved)), loading_(true) {}

  [[nodiscard]] bool is_loading() const { return loading_; }
  [[nodiscard]] const std::map<std::string, std::vector<double>>& arrays() const { return arrays_; }
  [[nodiscard]] std::map<std::string, std::vector<double>> take() { return std::move(arrays_); }

  /// Loading: whether there is an array of this name.
  [[nodiscard]] bool has(const std::string& name) const { return arrays_.contains(prefix_ + name); }

  template <typename Number>
  void number(const std::string& name, Number& value) {
    static_assert(std::is_arithmetic_v<Number>);
    if (loading_) {
      const double number = saved(name, 1).front();
      constexpr double most_whole = 9007199254740992;  // 2^53
      if (std::is_integral_v<Number> && !(std::abs(number) <= most_whole))
        throw std::runtime_error("the training state has a count that cannot be in '" + prefix_ + name + "'");
      value = static_cast<Number>(number);
      return;
    }
    arrays_[prefix_ + name] = {static_cast<double>(value)};
  }

  /// One of the choices of an enumeration, of which this is the last.
  template <typename Choice>
  void choice(const std::string& name, Choice& value, Choice last) {
    auto place = static_cast<Index>(value);
    number(name, place);
    if (place < 0 || place > static_cast<Index>(last))
      throw std::runtime_error("the training state has a choice that is unknown in '" + prefix_ + name + "'");
    value = static_cast<Choice>(place);
  }

  /// A vector of `size` numbers.
  template <typename Number, typename Allocator>
  void vector(const std::string& name, std::vector<Number, Allocator>& values, Index size) {
    if (!loading_) {
      arrays_[prefix_ + name].assign(values.begin(), values.end());
      return;
    }
    const std::vector<double>& numbers = saved(name, size);
    values.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) values[i] = static_cast<Number>(numbers[i]);
  }

  /// An Eigen matrix, in its own storage order.
  template <typename Matrix>
  void matrix(const std::string& name, Matrix& values, Index rows, Index columns) {
    if (!loading_) {
      arrays_[prefix_ + name].assign(values.data(), values.data() + values.size());
      return;
    }
    const std::vector<double>& numbers = saved(name, rows * columns);
    values.resize(rows, columns);
    for (Index i = 0; i < values.size(); ++i)
      values.data()[i] = static_cast<typename Matrix::Scalar>(numbers[static_cast<std::size_t>(i)]);
  }

  /// Runs `part` with names behind `prefix`.
  template <typename Part>
  void group(const std::string& prefix, Part&& part) {
    const std::string outer = prefix_;
    prefix_ += prefix + ".";
    std::forward<Part>(part)();
    prefix_ = outer;
  }

 private:
  [[nodiscard]] const std::vector<double>& saved(const std::string& name, Index size) const {
    const auto found = arrays_.find(prefix_ + name);
    if (found == arrays_.end() || static_cast<Index>(found->second.size()) != size)
      throw std::runtime_error("the training state lacks '" + prefix_ + name + "', or it has another size");
    if (!std::all_of(found->second.begin(), found->second.end(), [](double number) { return std::isfinite(number); }))
      throw std::runtime_error("the training state has numbers in '" + prefix_ + name + "' that are not finite");
    return found->second;
  }

  std::map<std::string, std::vector<double>> arrays_;
  std::string prefix_;
  bool loading_ = false;
};

}  // namespace dyad
