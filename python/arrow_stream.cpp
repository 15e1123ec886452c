// Reader of tables through the Arrow PyCapsule interface, which needs no library of the producer.
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "support.h"

using namespace nanobind::literals;

// Structures of the Arrow C data interface and C stream interface, as specified in
// https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace dyad::python {
namespace {

/// Owner of a structure of the C data interface.
template <typename Structure>
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value.release != nullptr) value.release(&value);
  }
  Structure value{};
};

using Batch = std::shared_ptr<Owned<ArrowArray>>;

/// Part of an array that belongs to one batch: entries [first, first + length).
struct Span {
  const ArrowArray* array;
  std::int64_t first;
  std::int64_t length;

  template <typename Value>
  [[nodiscard]] const Value* buffer(int index) const {
    return static_cast<const Value*>(array->buffers[index]);
  }
  [[nodiscard]] bool has_nulls() const { return array->null_count != 0 && array->buffers[0] != nullptr; }
  [[nodiscard]] bool is_null(std::int64_t i) const {
    if (!has_nulls()) return false;
    const std::int64_t bit = first + i;
    return (buffer<std::uint8_t>(0)[bit / 8] >> (bit % 8) & 1) == 0;
  }
};

double half_to_double(std::uint16_t bits) {
  const double sign = bits >> 15 != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

/// Value of a decimal of `words` 32-bit words in two's complement, little-endian, times 10^-scale, correctly rounded.
double decimal_to_double(const std::uint32_t* source, int words, int scale) {
  std::array<std::uint32_t, 8> limbs{};
  std::copy(source, source + words, limbs.begin());
  const bool is_negative = limbs[static_cast<std::size_t>(words - 1)] >> 31 != 0;
  if (is_negative) {
    std::uint64_t carry = 1;
    for (int i = 0; i < words; ++i) {
      carry += static_cast<std::uint32_t>(~limbs[static_cast<std::size_t>(i)]);
      limbs[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  std::string digits;  // the last digit first
  for (int top = words; top > 0;) {
    std::uint64_t rest = 0;
    for (int i = top - 1; i >= 0; --i) {
      rest = rest << 32 | limbs[static_cast<std::size_t>(i)];
      limbs[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(rest / 10);
      rest %= 10;
    }
    digits += static_cast<char>('0' + rest);
    while (top > 0 && limbs[static_cast<std::size_t>(top - 1)] == 0) --top;
  }
  const std::string text =
      (is_negative ? "-" : "") + std::string(digits.rbegin(), digits.rend()) + fmt::format("e{}", -scale);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Calls visit(pointer) with a null pointer of the type of a fixed-width format; returns false for other formats.
template <typename Visit>
bool visit_number_type(char format, Visit&& visit) {
  switch (format) {
    case 'c':
      visit(static_cast<const std::int8_t*>(nullptr));
      return true;
    case 'C':
      visit(static_cast<const std::uint8_t*>(nullptr));
      return true;
    case 's':
      visit(static_cast<const std::int16_t*>(nullptr));
      return true;
    case 'S':
      visit(static_cast<const std::uint16_t*>(nullptr));
      return true;
    case 'i':
      visit(static_cast<const std::int32_t*>(nullptr));
      return true;
    case 'I':
      visit(static_cast<const std::uint32_t*>(nullptr));
      return true;
    case 'l':
      visit(static_cast<const std::int64_t*>(nullptr));
      return true;
    case 'L':
      visit(static_cast<const std::uint64_t*>(nullptr));
      return true;
    case 'f':
      visit(static_cast<const float*>(nullptr));
      return true;
    case 'g':
      visit(static_cast<const double*>(nullptr));
      return true;
    default:
      return false;
  }
}

bool is_integer_format(std::string_view format) {
  return format.size() == 1 && std::string_view("cCsSiIlL").find(format[0]) != std::string_view::npos;
}

/// Entry of a column of strings.
std::string_view text_at(const Span& span, std::string_view format, std::int64_t i) {
  const std::int64_t at = span.first + i;
  if (format == "vu") {  // 16 bytes: length, then up to 12 characters, or prefix, buffer and offset
    const auto* view = span.buffer<char>(1) + 16 * at;
    std::int32_t length = 0;
    std::memcpy(&length, view, 4);
    if (length <= 12) return {view + 4, static_cast<std::size_t>(length)};
    std::int32_t buffer = 0;
    std::int32_t offset = 0;
    std::memcpy(&buffer, view + 8, 4);
    std::memcpy(&offset, view + 12, 4);
    return {span.buffer<char>(2 + buffer) + offset, static_cast<std::size_t>(length)};
  }
  const auto range = [&](const auto* offsets) {
    return std::string_view(span.buffer<char>(2) + offsets[at],
                            static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
  };
  return format == "U" ? range(span.buffer<std::int64_t>(1)) : range(span.buffer<std::int32_t>(1));
}

bool is_text_format(std::string_view format) { return format == "u" || format == "U" || format == "vu"; }

/// Numbers of microseconds in one unit of a date or timestamp, and of units in a microsecond.
struct TimeUnit {
  std::int64_t factor = 1;
  std::int64_t divisor = 1;
  bool is_32_bit = false;
};

std::optional<TimeUnit> time_unit(std::string_view format) {
  if (format == "tdD") return TimeUnit{86'400'000'000, 1, true};
  if (format == "tdm") return TimeUnit{1000, 1};
  if (!format.starts_with("ts") || format.size() < 4) return {};
  switch (format[2]) {
    case 's':
      return TimeUnit{1'000'000, 1};
    case 'm':
      return TimeUnit{1000, 1};
    case 'u':
      return TimeUnit{1, 1};
    case 'n':
      return TimeUnit{1, 1000};
    default:
      return {};
  }
}

/// Categories in the order of their first occurrence.
class Categories {
 public:
  std::int32_t code(std::string_view text) {
    const auto [entry, is_new] = codes_.try_emplace(std::string(text), static_cast<std::int32_t>(names_.size()));
    if (is_new) names_.emplace_back(text);
    return entry->second;
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, std::int32_t> codes_;
  std::vector<std::string> names_;
};

/// Column of all batches.
class ArrowColumn {
 public:
  ArrowColumn(const ArrowSchema& schema, std::vector<Span> spans, std::vector<Batch> batches)
      : schema_(schema), format_(schema.format), spans_(std::move(spans)), batches_(std::move(batches)) {
    for (const Span& span : spans_) count_ += static_cast<std::size_t>(span.length);
  }

  /// Returns (kind, values, categories, type), as documented in _core.pyi.
  [[nodiscard]] nb::tuple convert() {
    if (schema_.dictionary != nullptr) return convert_dictionary();
    if (is_text_format(format_)) return convert_text();
    if (format_ == "n") return result("empty", to_array(std::vector<double>(count_, std::nan(""))));
    if (format_ == "b" || format_ == "e") return result("number", to_array(numbers()));
    if (is_integer_format(format_)) return result("integer", to_array(numbers()));
    if (format_ == "f" || format_ == "g") return result("number", floats());
    if (format_.starts_with("d:")) return result("number", to_array(decimals()));
    if (const std::optional<TimeUnit> unit = time_unit(format_)) return result("date", to_array(times(*unit)));
    return result("unsupported", nb::none());
  }

 private:
  [[nodiscard]] nb::tuple result(const char* kind, const nb::object& values,
                                 const std::vector<std::string>& categories = {}) const {
    return nb::make_tuple(kind, values, categories, std::string(format_));
  }

  /// Calls visit(span, i, row) for all entries that are not null.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    std::size_t row = 0;
    for (const Span& span : spans_)
      for (std::int64_t i = 0; i < span.length; ++i, ++row)
        if (!span.is_null(i)) visit(span, i, row);
  }

  [[nodiscard]] std::vector<double> numbers() const {
    std::vector<double> values(count_, std::nan(""));
    if (format_ == "b")
      for_each([&](const Span& span, std::int64_t i, std::size_t row) {
        const std::int64_t bit = span.first + i;
        values[row] = span.buffer<std::uint8_t>(1)[bit / 8] >> (bit % 8) & 1;
      });
    else if (format_ == "e")
      for_each([&](const Span& span, std::int64_t i, std::size_t row) {
        values[row] = half_to_double(span.buffer<std::uint16_t>(1)[span.first + i]);
      });
    else
      visit_number_type(format_[0], [&](auto* type) {
        using Number = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        for_each([&](const Span& span, std::int64_t i, std::size_t row) {
          values[row] = static_cast<double>(span.buffer<Number>(1)[span.first + i]);
        });
      });
    return values;
  }

  /// Array of a single batch without nulls, which is not copied; otherwise a copy.
  [[nodiscard]] nb::object floats() const {
    if (spans_.size() != 1 || spans_[0].has_nulls()) return to_array(numbers());
    nb::object array;
    visit_number_type(format_[0], [&](auto* type) {
      using Number = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
      if constexpr (std::is_floating_point_v<Number>) {
        auto* owned = new Batch(batches_[0]);
        const nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<Batch*>(pointer); });
        const Number* values = spans_[0].buffer<Number>(1);
        array = nb::cast(
            nb::ndarray<nb::numpy, const Number>(values + (values != nullptr ? spans_[0].first : 0), {count_}, owner));
      }
    });
    return array;
  }

  [[nodiscard]] std::vector<double> decimals() const {
    int scale = 0;
    int bits = 128;
    const std::size_t comma = format_.find(',');
    const std::size_t second = format_.find(',', comma + 1);
    std::from_chars(format_.data() + comma + 1, format_.data() + format_.size(), scale);
    if (second != std::string_view::npos)
      std::from_chars(format_.data() + second + 1, format_.data() + format_.size(), bits);
    const int words = bits / 32;
    if (words < 1 || words > 8) throw std::invalid_argument(fmt::format("unknown Arrow type {}", format_));
    std::vector<double> values(count_, std::nan(""));
    for_each([&](const Span& span, std::int64_t i, std::size_t row) {
      values[row] = decimal_to_double(span.buffer<std::uint32_t>(1) + words * (span.first + i), words, scale);
    });
    return values;
  }

  /// Microseconds since 1970-01-01; the smallest integer for nulls, as numpy.datetime64("NaT").
  [[nodiscard]] std::vector<std::int64_t> times(TimeUnit unit) const {
    std::vector<std::int64_t> values(count_, std::numeric_limits<std::int64_t>::min());
    for_each([&](const Span& span, std::int64_t i, std::size_t row) {
      const std::int64_t value =
          unit.is_32_bit ? span.buffer<std::int32_t>(1)[span.first + i] : span.buffer<std::int64_t>(1)[span.first + i];
      if (std::abs(static_cast<double>(value)) > 9.2e18 / static_cast<double>(unit.factor))
        throw std::invalid_argument(fmt::format("row {} has a date beyond the year 290000", row));
      std::int64_t quotient = value / unit.divisor;
      if (value % unit.divisor < 0) --quotient;
      values[row] = quotient * unit.factor;
    });
    return values;
  }

  [[nodiscard]] nb::tuple convert_text() const {
    Categories categories;
    std::vector<std::int32_t> codes(count_, -1);
    for_each([&](const Span& span, std::int64_t i, std::size_t row) {
      codes[row] = categories.code(text_at(span, format_, i));
    });
    return result("category", to_array(std::move(codes)), categories.names());
  }

  [[nodiscard]] nb::tuple convert_dictionary() const {
    const std::string_view value_format = schema_.dictionary->format;
    if (!is_integer_format(format_) || !(is_text_format(value_format) || is_integer_format(value_format)))
      return nb::make_tuple("unsupported", nb::none(), std::vector<std::string>(),
                            fmt::format("dictionary of {}", value_format));
    Categories categories;
    std::vector<std::int32_t> codes(count_, -1);
    std::size_t row = 0;
    for (const Span& span : spans_) {
      const std::vector<std::int32_t> batch_codes = dictionary_codes(*span.array->dictionary, value_format, categories);
      visit_number_type(format_[0], [&](auto* type) {
        using Number = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
        for (std::int64_t i = 0; i < span.length; ++i, ++row) {
          if (span.is_null(i)) continue;
          const auto index = static_cast<std::size_t>(span.buffer<Number>(1)[span.first + i]);
          if (index >= batch_codes.size())
            throw std::invalid_argument(fmt::format("row {} has the dictionary index {}, the dictionary has {} entries",
                                                    row, index, batch_codes.size()));
          codes[row] = batch_codes[index];
        }
      });
    }
    return result("category", to_array(std::move(codes)), categories.names());
  }

  /// Code of each entry of a dictionary; -1 for null.
  static std::vector<std::int32_t> dictionary_codes(const ArrowArray& dictionary, std::string_view format,
                                                    Categories& categories) {
    const Span entries{&dictionary, dictionary.offset, dictionary.length};
    std::vector<std::int32_t> codes(static_cast<std::size_t>(dictionary.length), -1);
    for (std::int64_t i = 0; i < dictionary.length; ++i) {
      if (entries.is_null(i)) continue;
      std::int32_t& code = codes[static_cast<std::size_t>(i)];
      if (is_text_format(format))
        code = categories.code(text_at(entries, format, i));
      else
        visit_number_type(format[0], [&](auto* type) {
          using Number = std::remove_cv_t<std::remove_pointer_t<decltype(type)>>;
          code = categories.code(fmt::format("{}", entries.buffer<Number>(1)[entries.first + i]));
        });
    }
    return codes;
  }

  const ArrowSchema& schema_;
  std::string_view format_;
  std::vector<Span> spans_;
  std::vector<Batch> batches_;
  std::size_t count_ = 0;
};

void check(int status, ArrowArrayStream& stream) {
  if (status == 0) return;
  const char* message = stream.get_last_error(&stream);
  throw std::runtime_error(
      fmt::format("the Arrow stream of X failed: {}", message == nullptr ? "unknown error" : message));
}

/// Reads all batches of a stream of record batches. Returns the number of rows and a list of
/// (name, kind, values, categories, type), one per column. Returns None for a stream of other arrays.
nb::object read_arrow_stream(const nb::capsule& capsule) {
  if (capsule.name() == nullptr || std::strcmp(capsule.name(), "arrow_array_stream") != 0)
    throw std::invalid_argument("expected a capsule with the name arrow_array_stream");
  // The structure is moved out of the capsule, as the specification permits.
  Owned<ArrowArrayStream> owned;
  auto* source = static_cast<ArrowArrayStream*>(capsule.data());
  std::swap(owned.value, *source);
  ArrowArrayStream& stream = owned.value;
  if (stream.release == nullptr) throw std::invalid_argument("the Arrow stream of X has been read before");
  Owned<ArrowSchema> schema;
  check(stream.get_schema(&stream, &schema.value), stream);
  if (std::string_view(schema.value.format) != "+s") return nb::none();
  std::vector<Batch> batches;
  std::int64_t rows = 0;
  while (true) {
    auto batch = std::make_shared<Owned<ArrowArray>>();
    check(stream.get_next(&stream, &batch->value), stream);
    if (batch->value.release == nullptr) break;
    rows += batch->value.length;
    if (batch->value.length > 0) batches.push_back(std::move(batch));
  }
  nb::list columns;
  for (std::int64_t c = 0; c < schema.value.n_children; ++c) {
    const ArrowSchema& child = *schema.value.children[c];
    std::vector<Span> spans;
    for (const Batch& batch : batches) {
      const ArrowArray& array = *batch->value.children[c];
      spans.push_back({&array, array.offset + batch->value.offset, batch->value.length});
    }
    const nb::tuple converted = ArrowColumn(child, std::move(spans), batches).convert();
    columns.append(nb::make_tuple(std::string(child.name == nullptr ? "" : child.name), converted[0], converted[1],
                                  converted[2], converted[3]));
  }
  return nb::make_tuple(rows, columns);
}

}  // namespace

void bind_arrow(nb::module_& module) { module.def("read_arrow_stream", &read_arrow_stream, "capsule"_a); }

}  // namespace dyad::python
