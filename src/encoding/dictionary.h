#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <dyad/rows.h>

#include "base/keyed_hash.h"
#include "base/text_store.h"
#include "linalg/simd.h"

namespace dyad {

/// Hash table from texts to numbers, with open addressing and linear probing. Lookups take about half of the time of
/// reading tables of ratings. A slot therefore contains texts of up to 8 bytes, such as user and item names, so that a
/// lookup of a short text accesses one cache line in most cases. Each text is stored once, without an allocation.
///
/// One thread may call add() while other threads look up texts with a Reader. Texts that were added after the creation
/// of the Reader may be absent from it.
class Dictionary {
  struct Table;

 public:
  static constexpr Index absent = -1;  ///< result of find() for a text that is not in the table

  /// Lookups in the table at the time of creation. Refers to the dictionary, which must outlive it.
  class Reader {
   public:
    [[nodiscard]] Index find(std::string_view text) const { return table_->find(text, *texts_); }
    /// Prefetches the slot of a text that find() will look up.
    void prefetch(std::string_view text) const { table_->prefetch(text); }

   private:
    friend class Dictionary;
    Reader(std::shared_ptr<const Table> table, const TextStore& texts) : table_(std::move(table)), texts_(&texts) {}

    std::shared_ptr<const Table> table_;
    const TextStore* texts_;
  };

  Dictionary() : table_(std::make_shared<Table>(initial_slots)) {}

  [[nodiscard]] Index find(std::string_view text) const { return table_->find(text, texts_); }

  /// May be called from any thread.
  [[nodiscard]] Reader reader() const {
    const std::lock_guard lock(mutex_);
    return {table_, texts_};
  }

  /// Adds a text that is absent, with a number of at least 0. Returns the position of the stored text, see text().
  std::uint64_t add(std::string_view text, Index number) {
    // Load factor of at most 3/4. Linear probing then takes (1 + 1/(1 - 3/4)) / 2 = 2.5 probes per successful and
    // (1 + 1/(1 - 3/4)^2) / 2 = 8.5 per unsuccessful search (Knuth, TAOCP vol. 3, section 6.4).
    if (4 * (count_ + 1) > 3 * table_->size()) grow();
    const std::uint64_t position = texts_.add(text);
    table_->insert(text, position, static_cast<std::int32_t>(number));
    ++count_;
    return position;
  }

  /// The text at a position that add() returned.
  [[nodiscard]] std::string_view text(std::uint64_t position) const { return texts_.at(position); }

 private:
  static constexpr std::size_t initial_slots = 16;
  static constexpr std::int32_t empty_slot = -1;
  static constexpr std::size_t max_inline_bytes = sizeof(std::uint64_t);  ///< texts that fit into Slot::key

  /// 16 bytes, so that four slots share a cache line. `number` is written last and read first. Short texts: `key`
  /// contains the bytes. Long texts: the position of the text, and the upper bits of its hash.
  struct Slot {
    std::atomic<std::uint64_t> key = 0;
    std::atomic<std::int32_t> number = empty_slot;
    std::atomic<std::uint32_t> length = 0;  ///< in bytes; longer texts: the largest value
  };

  static std::uint32_t length_of(std::string_view text) {
    return static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), std::numeric_limits<std::uint32_t>::max()));
  }

  /// Bytes of a text of at most 8 bytes. Text and length determine each other.
  static std::uint64_t bytes_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])); };
    const std::size_t length = text.size();
    if (length == 0) return 0;
    if (length < 4) return byte(0) | byte(length / 2) << 8 | byte(length - 1) << 16;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + length - sizeof last, sizeof last);
    return first | static_cast<std::uint64_t>(last) << 32;
  }

  static std::uint64_t hash_of(std::string_view text) {
    return text.size() > max_inline_bytes ? KeyedHash::hash(text) : KeyedHash::hash(bytes_of(text));
  }
  static constexpr std::uint64_t position_mask = (std::uint64_t{1} << TextStore::position_bits) - 1;

  /// The slots. The size is a power of two.
  struct Table {
    explicit Table(std::size_t slot_count) : mask(slot_count - 1), slots(std::make_unique<Slot[]>(slot_count)) {}

    [[nodiscard]] std::size_t size() const { return mask + 1; }

    [[nodiscard]] Index find(std::string_view text, const TextStore& texts) const {
      const bool is_short = text.size() <= max_inline_bytes;
      const std::uint64_t hash = hash_of(text);
      const std::uint64_t key = is_short ? bytes_of(text) : hash & ~position_mask;
      const std::uint32_t length = length_of(text);
      for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
        const Slot& slot = slots[i];
        const std::int32_t number = slot.number.load(std::memory_order_acquire);
        if (number == empty_slot) return absent;
        if (slot.length.load(std::memory_order_relaxed) != length) continue;
        const std::uint64_t slot_key = slot.key.load(std::memory_order_relaxed);
        if (is_short ? slot_key == key
                     : (slot_key & ~position_mask) == key && texts.at(slot_key & position_mask) == text)
          return number;
      }
    }

    void prefetch(std::string_view text) const { prefetch_cache_line(&slots[hash_of(text) & mask]); }

    void insert(std::string_view text, std::uint64_t position, std::int32_t number) {
      const std::uint64_t hash = hash_of(text);
      std::size_t i = hash & mask;
      while (slots[i].number.load(std::memory_order_relaxed) != empty_slot) i = (i + 1) & mask;
      slots[i].key.store(text.size() <= max_inline_bytes ? bytes_of(text) : (hash & ~position_mask) | position,
                         std::memory_order_relaxed);
      slots[i].length.store(length_of(text), std::memory_order_relaxed);
      slots[i].number.store(number, std::memory_order_release);
    }

    /// Inserts the contents of a slot of another table.
    void insert(const Slot& other, const TextStore& texts) {
      const std::uint64_t key = other.key.load(std::memory_order_relaxed);
      const std::uint32_t length = other.length.load(std::memory_order_relaxed);
      std::size_t i =
          (length <= max_inline_bytes ? KeyedHash::hash(key) : KeyedHash::hash(texts.at(key & position_mask))) & mask;
      while (slots[i].number.load(std::memory_order_relaxed) != empty_slot) i = (i + 1) & mask;
      slots[i].key.store(key, std::memory_order_relaxed);
      slots[i].length.store(length, std::memory_order_relaxed);
      slots[i].number.store(other.number.load(std::memory_order_relaxed), std::memory_order_release);
    }

    std::size_t mask;
    std::unique_ptr<Slot[]> slots;
  };

  void grow() {
    auto larger = std::make_shared<Table>(2 * table_->size());
    for (std::size_t i = 0; i < table_->size(); ++i)
      if (table_->slots[i].number.load(std::memory_order_relaxed) != empty_slot)
        larger->insert(table_->slots[i], texts_);
    const std::lock_guard lock(mutex_);
    table_ = std::move(larger);
  }

  mutable std::mutex mutex_;  ///< protects table_ against reader(); the thread of add() reads it without lock
  std::shared_ptr<Table> table_;
  TextStore texts_;
  std::size_t count_ = 0;
};

}  // namespace dyad
