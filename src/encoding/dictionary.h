#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <dyad/rows.h>

#include "base/keyed_hash.h"
#include "linalg/simd.h"

namespace dyad {

/// Hash table from texts to numbers, with open addressing and linear probing. Lookups take about half of the time of
/// reading tables of ratings. A slot therefore contains texts of up to 8 bytes, such as user and item names, so that a
/// lookup of a short text accesses one cache line in most cases. Concurrent calls of const functions are safe.
class Dictionary {
 public:
  static constexpr Index absent = -1;  ///< result of find() for a text that is not in the table

  [[nodiscard]] Index find(std::string_view text) const {
    const std::uint64_t key = key_of(text);
    for (std::size_t slot = first_slot(key);; slot = (slot + 1) & mask()) {
      const Slot& at = slots_[slot];
      if (at.number == empty_slot) return absent;
      if (at.key == key && at.length == text.size() && (text.size() <= max_inline_bytes || is_text_of(at, text)))
        return at.number;
    }
  }

  /// Prefetches the slot of a text that find() will look up.
  void prefetch(std::string_view text) const { prefetch_cache_line(&slots_[first_slot(key_of(text))]); }

  /// Adds a text that is absent. `number` is at least 0 and above all numbers added before. Returns the stored text,
  /// which stays valid as long as the dictionary, also if it is moved.
  const std::string& add(std::string_view text, Index number) {
    // Load factor of at most 3/4. Linear probing then takes (1 + 1/(1 - 3/4)) / 2 = 2.5 probes per successful and
    // (1 + 1/(1 - 3/4)^2) / 2 = 8.5 per unsuccessful search (Knuth, TAOCP vol. 3, section 6.4).
    if (4 * (texts_.size() + 1) > 3 * slots_.size()) grow();
    texts_.emplace_back(text);
    numbers_.push_back(static_cast<std::int32_t>(number));
    insert_entry(texts_.size() - 1);
    return texts_.back();
  }

 private:
  static constexpr std::int32_t empty_slot = -1;
  static constexpr std::size_t max_inline_bytes = sizeof(std::uint64_t);  ///< texts that fit into Slot::key
  /// 16 bytes, so that four slots share a cache line.
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t number = empty_slot;
    std::uint32_t length = 0;
  };

  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

  /// The bytes of the text if it is short (key and length determine the text), else its hash.
  static std::uint64_t key_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])); };
    const std::size_t length = text.size();
    if (length > max_inline_bytes) return KeyedHash::hash(text);
    if (length == 0) return 0;
    if (length < 4) return byte(0) | byte(length / 2) << 8 | byte(length - 1) << 16;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + length - sizeof last, sizeof last);
    return first | static_cast<std::uint64_t>(last) << 32;
  }

  [[nodiscard]] std::size_t first_slot(std::uint64_t key) const { return KeyedHash::hash(key) & mask(); }

  /// Compares a text with the text of a slot. `numbers_` is sorted, so that a binary search finds the entry.
  [[nodiscard]] bool is_text_of(const Slot& slot, std::string_view text) const {
    const auto entry = std::lower_bound(numbers_.begin(), numbers_.end(), slot.number) - numbers_.begin();
    return texts_[static_cast<std::size_t>(entry)] == text;
  }

  void insert_entry(std::size_t entry) {
    const std::uint64_t key = key_of(texts_[entry]);
    std::size_t slot = first_slot(key);
    while (slots_[slot].number != empty_slot) slot = (slot + 1) & mask();
    slots_[slot] = {key, numbers_[entry], static_cast<std::uint32_t>(texts_[entry].size())};
  }

  void grow() {
    slots_.assign(2 * slots_.size(), {});
    for (std::size_t entry = 0; entry < texts_.size(); ++entry) insert_entry(entry);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);  ///< the size is a power of two, see mask()
  std::deque<std::string> texts_;
  std::vector<std::int32_t> numbers_;  ///< number of each text in `texts_`; increasing
};

}  // namespace dyad
