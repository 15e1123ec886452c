#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "base/secret_hash.h"

namespace dyad {

/// Positions of names in a list, found in constant time, also for names that were chosen to collide. Refers to the
/// names, which must outlive it.
class NameIndex {
 public:
  static constexpr std::size_t absent = static_cast<std::size_t>(-1);

  NameIndex() = default;
  template <typename Names>
  explicit NameIndex(const Names& names) {
    for (const auto& name : names) (void)add(name);
  }

  /// Gives the name the next position. Returns false if the name is there already, which keeps its first position.
  bool add(std::string_view name) { return positions_.try_emplace(name, next_++).second; }

  [[nodiscard]] std::size_t find(std::string_view name) const {
    const auto found = positions_.find(name);
    return found == positions_.end() ? absent : found->second;
  }

 private:
  struct Hash {
    std::size_t operator()(std::string_view name) const { return SecretHash::of(name); }
  };

  std::unordered_map<std::string_view, std::size_t, Hash> positions_;
  std::size_t next_ = 0;
};

}  // namespace dyad
