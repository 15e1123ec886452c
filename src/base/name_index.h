#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>

#include "base/keyed_hash.h"

namespace dyad {

/// Hash map from names to their positions in a list. The hash is keyed, so that lookups take constant expected time
/// also for adversarial names. Does not own the names; the caller keeps them alive.
class NameIndex {
 public:
  static constexpr std::size_t absent = static_cast<std::size_t>(-1);  ///< result of find() for an unknown name

  NameIndex() = default;
  template <typename Names>
  explicit NameIndex(const Names& names) {
    for (const auto& name : names) (void)add(name);
  }

  /// Assigns the next position to the name. A repeated name keeps its first position; the call then returns false and
  /// skips one position.
  bool add(std::string_view name) { return positions_.try_emplace(name, next_++).second; }

  /// Position of a name, or `absent`.
  [[nodiscard]] std::size_t find(std::string_view name) const {
    const auto found = positions_.find(name);
    return found == positions_.end() ? absent : found->second;
  }

 private:
  struct Hash {
    std::size_t operator()(std::string_view name) const { return KeyedHash::hash(name); }
  };

  std::unordered_map<std::string_view, std::size_t, Hash> positions_;
  std::size_t next_ = 0;
};

}  // namespace dyad
