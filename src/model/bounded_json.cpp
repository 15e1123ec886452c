#include "model/bounded_json.h"

namespace dyad {

nlohmann::json bounded_json(std::string_view text) {
  using nlohmann::json;
  constexpr int deepest = 8;
  constexpr std::size_t largest_ratio = 16;
  constexpr std::size_t always_allowed = 1 << 16;
  std::size_t bytes = 0;
  const auto count = [&](int depth, json::parse_event_t event, const json&) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        bytes += 64;
        break;
      case json::parse_event_t::key:
        bytes += 96;  // a node of a tree
        break;
      case json::parse_event_t::value:
        bytes += 48;  // in a list that grows by half or more
        break;
      default:
        break;
    }
    if (depth > deepest || bytes > largest_ratio * text.size() + always_allowed)
      throw std::length_error("more than a model has");
    return true;
  };
  try {
    return json::parse(text, count, false);
  } catch (const std::length_error&) {
    return json(json::value_t::discarded);
  }
}

}  // namespace dyad
