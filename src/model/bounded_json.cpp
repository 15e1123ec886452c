#include "model/bounded_json.h"

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

}  // namespace

json bounded_json(std::string_view text) {
  Counter counter(text.size());
  if (!json::sax_parse(text, &counter)) return json(json::value_t::discarded);
  return json::parse(text, nullptr, false);
}

}  // namespace dyad
