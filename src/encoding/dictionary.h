#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <dyad/rows.h>

#include "base/secret_hash.h"
#include "linalg/simd.h"

namespace dyad {

/// Texts and their numbers. Lookups are half of the time of reading ratings, so the table is flat, and a text of up to
/// 8 bytes, as names of users and items are, stands in its slot: a probe touches nothing else.
class Dictionary {
 public:
  static constexpr Index absent = -1;

  [[nodiscard]] Index find(std::string_view text) const {
    const std::uint64_t key = key_of(text);
    for (std::size_t slot = first_slot(key);; slot = (slot + 1) & mask()) {
      const Slot& at = slots_[slot];
      if (at.number == empty) return absent;
      if (at.key == key && at.length == text.size() && (text.size() <= inlined || is_text_of(at, text)))
        return at.number;
    }
  }

  /// Makes the slot of a text that will be looked up soon come near.
  void prefetch(std::string_view text) const { fetch(&slots_[first_slot(key_of(text))]); }

  /// Adds a text that is absent, with a number of at least 0 and above all numbers before it. Returns where the text is
  /// kept, for as long as the dictionary lives.
  const std::string& add(std::string_view text, Index number) {
    if (4 * (texts_.size() + 1) > 3 * slots_.size()) grow();
    texts_.emplace_back(text);
    numbers_.push_back(static_cast<std::int32_t>(number));
    place(texts_.size() - 1);
    return texts_.back();
  }

 private:
  static constexpr std::int32_t empty = -1;
  static constexpr std::size_t inlined = 8;
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t number = empty;
    std::uint32_t length = 0;
  };

  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

  /// The text itself where it is short (for its length it is unique), a hash of it otherwise.
  static std::uint64_t key_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])); };
    const std::size_t length = text.size();
    if (length > inlined) return SecretHash::of(text);
    if (length == 0) return 0;
    if (length < 4) return byte(0) | byte(length / 2) << 8 | byte(length - 1) << 16;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + length - sizeof last, sizeof last);
    return first | static_cast<std::uint64_t>(last) << 32;
  }

  [[nodiscard]] std::size_t first_slot(std::uint64_t key) const { return SecretHash::of(key) & mask(); }

  [[nodiscard]] bool is_text_of(const Slot& slot, std::string_view text) const {
    const auto entry = std::lower_bound(numbers_.begin(), numbers_.end(), slot.number) - numbers_.begin();
    return texts_[static_cast<std::size_t>(entry)] == text;
  }

  void place(std::size_t entry) {
    const std::uint64_t key = key_of(texts_[entry]);
    std::size_t slot = first_slot(key);
    while (slots_[slot].number != empty) slot = (slot + 1) & mask();
    slots_[slot] = {key, numbers_[entry], static_cast<std::uint32_t>(texts_[entry].size())};
  }

  void grow() {
    slots_.assign(2 * slots_.size(), {});
    for (std::size_t entry = 0; entry < texts_.size(); ++entry) place(entry);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::deque<std::string> texts_;
  std::vector<std::int32_t> numbers_;  ///< of the texts, rising
};

}  // namespace dyad
