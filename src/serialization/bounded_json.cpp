#include "serialization/bounded_json.h"

#include <string>
#include <utility>
#include <vector>

namespace dyad {
namespace {

using nlohmann::json;

/// Reads through the text and keeps nothing; stops where it is deeper or denser than any model.
class Counter : public nlohmann::json_sax<json> {
 public:
  explicit Counter(std::size_t text_bytes) : most_bytes_(largest_ratio * text_bytes + always_allowed) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t&) override { return takes(128); }  // a node of a tree
  bool start_object(std::size_t) override { return ++depth_ <= deepest && takes(80); }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ <= deepest && takes(80); }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

 private:
  static constexpr int deepest = 8;
  static constexpr std::size_t largest_ratio = 16;
  static constexpr std::size_t always_allowed = 1 << 16;

  bool value() { return takes(48); }  // in a list that grows by half or more
  bool takes(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ <= most_bytes_;
  }

  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  int depth_ = 0;
};

/// Builds the document in place.
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
    if (open_.empty()) return &(root_ = std::move(value));
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool open(json::value_t kind) {
    open_.push_back(add(kind));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  json& root_;
  std::vector<json*> open_;  ///< the values whose children are read, outermost first
  std::string key_;          ///< of the next value, if its parent is an object
};

/// Removes all children, from the leaves up.
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
    Counter counter(text.size());
    Builder builder(root_);
    if (json::sax_parse(text, &counter) && json::sax_parse(text, &builder)) return;
    clear(root_);
    root_ = json(json::value_t::discarded);
  } catch (...) {
    clear(root_);
    throw;
  }
}

JsonDocument::~JsonDocument() { clear(root_); }

}  // namespace dyad
