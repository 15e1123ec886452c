#include "serialization/bounded_json.h"

#include <string>
#include <utility>
#include <vector>

namespace dyad {
namespace {

using nlohmann::json;

/// Estimates the memory of the parsed document without building it. Stops parsing if a limit is exceeded.
class MemoryEstimator : public nlohmann::json_sax<json> {
 public:
  explicit MemoryEstimator(std::size_t text_bytes)
      : max_bytes_(max_bytes_per_text_byte * text_bytes + base_allowance_bytes) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t&) override { return add_bytes(key_bytes); }
  bool start_object(std::size_t) override { return ++depth_ <= max_depth && add_bytes(container_bytes); }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ <= max_depth && add_bytes(container_bytes); }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

 private:
  /// The most deeply nested text of a model file, the feature schema, has 4 levels: root, columns, column, scaling.
  /// Sensitivity: docs/constants.md.
  static constexpr int max_depth = 8;
  /// Limit on the estimated memory per byte of text. It rejects texts such as [[],[],...], whose values need many times
  /// the memory of their text. Sensitivity: docs/constants.md.
  static constexpr std::size_t max_bytes_per_text_byte = 16;
  /// Memory that is allowed in addition, so that short texts are not rejected. Sensitivity: docs/constants.md.
  static constexpr std::size_t base_allowance_bytes = 1 << 16;
  /// Estimates of the memory of nlohmann::json (16 bytes) on 64-bit machines. The std::string of a text value and its
  /// characters are not counted. A value in an array needs 3 times
  /// 16 bytes while the array doubles its capacity. An object is a value and a std::map (48 bytes) with the overhead of
  /// its allocation (16 bytes). A key and its value are a node of that map (80 bytes) with overhead, rounded up.
  static constexpr std::size_t value_bytes = 48;
  static constexpr std::size_t key_bytes = 128;
  static constexpr std::size_t container_bytes = 80;

  bool value() { return add_bytes(value_bytes); }
  bool add_bytes(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ <= max_bytes_;
  }

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  int depth_ = 0;
};

/// Builds the document in place, so that no value is copied or destroyed with children.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(json& root) : root_(root) {}

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return add(value) != nullptr; }
  bool string(string_t& value) override { return add(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override { return open(json::value_t::object); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(json::value_t::array); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

 private:
  json* add(json value) {
    if (parents_.empty()) return &(root_ = std::move(value));
    json& parent = *parents_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool open(json::value_t kind) {
    parents_.push_back(add(kind));
    return true;
  }
  bool close() {
    parents_.pop_back();
    return true;
  }

  json& root_;
  std::vector<json*> parents_;  ///< containers that are being read, outermost first
  std::string key_;             ///< key of the next value if its parent is an object
};

/// Removes all children, starting at the leaves.
void clear(json& value) noexcept {
  if (auto* const array = value.get_ptr<json::array_t*>()) {
    for (json& child : *array) clear(child);
    array->clear();
  } else if (auto* const object = value.get_ptr<json::object_t*>()) {
    for (auto& [name, child] : *object) clear(child);
    object->clear();
  }
}

}  // namespace

JsonDocument::JsonDocument(std::string_view text) {
  try {
    MemoryEstimator estimator(text.size());
    Builder builder(root_);
    if (json::sax_parse(text, &estimator) && json::sax_parse(text, &builder)) return;
    clear(root_);
    root_ = json(json::value_t::discarded);
  } catch (...) {
    clear(root_);
    throw;
  }
}

JsonDocument::~JsonDocument() { clear(root_); }

}  // namespace dyad
