#pragma once

#include <utility>

namespace dyad {

/// Assigns `value` to a variable and restores the previous value on destruction. Does not own the variable.
template <typename Value>
class TemporaryValue {
 public:
  TemporaryValue(Value& variable, Value value)
      : variable_(variable), previous_(std::exchange(variable, std::move(value))) {}
  ~TemporaryValue() { variable_ = std::move(previous_); }
  TemporaryValue(const TemporaryValue&) = delete;
  TemporaryValue& operator=(const TemporaryValue&) = delete;

 private:
  Value& variable_;
  Value previous_;
};

}  // namespace dyad
