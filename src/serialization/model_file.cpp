#include "serialization/model_file.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <type_traits>

#include <dyad/data_error.h>
#include <dyad/version.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/memory_limit.h"
#include "base/output_file.h"
#include "model/sides.h"
#include "serialization/bounded_json.h"
#include "serialization/checksum.h"
#include "serialization/json_text.h"
#include "serialization/model_container.h"
#include "serialization/safetensors.h"

namespace dyad {
namespace {

using nlohmann::json;

constexpr int format_version = 2;
constexpr int first_version_with_checksum = 2;
constexpr const char* state_prefix = "state.";
constexpr const char* training_prefix = "training.";
// Models of version 0.1.0 do not have these.
constexpr const char* used_slots_name = "hash.used";
constexpr const char* flags_name = "flags";
constexpr const char* values_name = "values";

template <typename Choice, std::size_t count>
const char* word_for(const std::array<std::pair<const char*, Choice>, count>& words, Choice choice) {
  for (const auto& [word, value] : words)
    if (value == choice) return word;
  throw std::logic_error("a choice without a word");
}

constexpr std::array<std::pair<const char*, Kind>, 4> kinds{
    {{"gfm", Kind::gfm}, {"sensing", Kind::sensing}, {"phase", Kind::phase}, {"bilinear", Kind::bilinear}}};
constexpr std::array<std::pair<const char*, Layout>, 3> layouts{
    {{"csv", Layout::table}, {"libsvm", Layout::sparse}, {"npy", Layout::matrix}}};
constexpr std::array<std::pair<const char*, Column::Role>, 2> roles{
    {{"number", Column::Role::number}, {"category", Column::Role::category}}};

JsonText described(const Scaling& scaling) {
  return JsonText::object(
      {{"centre", scaling.centre}, {"scale", scaling.scale}, {"low", scaling.low}, {"high", scaling.high}});
}

JsonText described(const FeatureMap& map) {
  std::vector<JsonText> columns;
  for (const Column& column : map.columns()) {
    std::vector<std::pair<std::string, JsonText>> fields{{"name", column.name}, {"role", word_for(roles, column.role)}};
    if (column.right) fields.emplace_back("right", true);
    if (column.marks_missing) fields.emplace_back("marks_missing", true);
    if (column.role == Column::Role::number) fields.emplace_back("scaling", described(column.scaling));
    if (column.values) {
      const std::vector<double> values = column.values->all();
      fields.emplace_back(values_name, JsonText::array(std::vector<JsonText>(values.begin(), values.end())));
    }
    columns.push_back(JsonText::object(fields));
  }
  return JsonText::object({{"format", word_for(layouts, map.layout)},
                           {"kind", word_for(kinds, map.kind)},
                           {"columns", JsonText::array(columns)},
                           {"left_count", map.count_of_seen(FeatureMap::Side::left)},
                           {"right_count", map.count_of_seen(FeatureMap::Side::right)},
                           {"least_count", map.least_count},
                           {"hash_bits", map.hash_bits},
                           {"index_base", map.index_base},
                           {"right_first", map.right_first},
                           {"right_last", map.right_last},
                           {"weight", map.weight},
                           {"target", JsonText::object({{"name", map.target.name},
                                                        {"task", word_for(task_names, map.target.task)},
                                                        {"scaling", described(map.target.scaling)},
                                                        {"reach", map.target.reach},
                                                        {"low", map.target.low},
                                                        {"high", map.target.high},
                                                        {"range_is_given", map.target.range_is_given},
                                                        {"least_seen", map.target.least_seen},
                                                        {"most_seen", map.target.most_seen},
                                                        {"negative", map.target.negative},
                                                        {"positive", map.target.positive}})}});
}

/// Category texts one behind the other, where each ends, and the column of each.
struct CategoryTensors {
  std::vector<std::uint8_t> text;
  std::vector<std::int64_t> ends;
  std::vector<std::int32_t> columns;

  explicit CategoryTensors(const FeatureMap& map) {
    for (const auto side : {FeatureMap::Side::left, FeatureMap::Side::right})
      for (const auto& [column, name] : map.categories(side)) {
        text.insert(text.end(), name->begin(), name->end());
        ends.push_back(static_cast<std::int64_t>(text.size()));
        columns.push_back(static_cast<std::int32_t>(column));
      }
  }
};

/// Reads fields of untrusted files.
class Reader {
 public:
  Reader(const Safetensors& parts, const std::string& file) : parts_(parts), file_(file) {}

  [[noreturn]] void fail(const std::string& what) const { throw DataError(file_, 0, 0, what); }
  void require(bool holds, const std::string& what) const {
    if (!holds) fail("the model is damaged: " + what);
  }

  [[nodiscard]] const std::string& text(const std::string& name) const {
    const auto found = parts_.metadata.find(name);
    require(found != parts_.metadata.end(), "'" + name + "' is missing");
    return found->second;
  }

  template <typename Choice, std::size_t count>
  [[nodiscard]] Choice choice(const std::array<std::pair<const char*, Choice>, count>& words, const json& fields,
                              const char* name) const {
    const auto word = field<std::string>(fields, name);
    for (const auto& [known, value] : words)
      if (word == known) return value;
    fail("the model has the unknown " + std::string(name) + " '" + word + "'");
  }

  [[nodiscard]] const json& part(const json& fields, const char* name) const {
    require(fields.is_object() && fields.contains(name), "'" + std::string(name) + "' is missing");
    return fields[name];
  }

  template <typename Value>
  [[nodiscard]] Value field(const json& fields, const char* name) const {
    const json& value = part(fields, name);
    const bool is_right = std::is_same_v<Value, bool>     ? value.is_boolean()
                          : std::is_integral_v<Value>     ? value.is_number_integer()
                          : std::is_same_v<Value, double> ? value.is_number()
                                                          : value.is_string();
    require(is_right, "'" + std::string(name) + "' is of the wrong type");
    return value.template get<Value>();
  }

  [[nodiscard]] bool flag(const json& fields, const char* name) const {
    return fields.is_object() && fields.contains(name) && field<bool>(fields, name);
  }

  [[nodiscard]] Scaling scaling(const json& fields) const {
    const Scaling result{field<double>(fields, "centre"), field<double>(fields, "scale"), field<double>(fields, "low"),
                         field<double>(fields, "high")};
    require(result.is_valid(), "a scale is not possible");
    return result;
  }

  /// Of a column; nothing if it has no such field.
  [[nodiscard]] std::optional<TwoValues> values(const json& fields) const {
    if (!fields.contains(values_name)) return std::nullopt;
    TwoValues result;
    require(fields[values_name].is_array(), "the values of a column are no list");
    for (const json& value : fields[values_name])
      require(value.is_number() && std::isfinite(value.get<double>()) && result.add(value.get<double>()),
              "the values of a column are not possible");
    return result;
  }

  [[nodiscard]] const Tensor& tensor(const std::string& name) const {
    const auto found = parts_.tensors.find(name);
    require(found != parts_.tensors.end(), "the array '" + name + "' is missing");
    return found->second;
  }

  [[nodiscard]] bool has_tensor(const std::string& name) const { return parts_.tensors.contains(name); }

  template <typename Number>
  [[nodiscard]] std::vector<Number> exactly(const std::string& name) const {
    require(tensor(name).dtype == dtype_of<Number>(), "the array '" + name + "' has the wrong type");
    return numbers_of<Number>(tensor(name));
  }

  /// Floats of either size.
  [[nodiscard]] std::vector<double> floats(const std::string& name) const {
    if (tensor(name).dtype != dtype_of<float>()) return exactly<double>(name);
    const std::vector<float> numbers = numbers_of<float>(tensor(name));
    return {numbers.begin(), numbers.end()};
  }

 private:
  const Safetensors& parts_;
  const std::string& file_;
};

void read_features(const Reader& reader, FeatureMap& map) {
  const JsonDocument document(reader.text("features"));
  const json& fields = document.root();
  map.layout = reader.choice(layouts, fields, "format");
  map.kind = reader.choice(kinds, fields, "kind");
  map.hash_bits = reader.field<int>(fields, "hash_bits");
  map.index_base = reader.field<Index>(fields, "index_base");
  map.right_first = reader.field<Index>(fields, "right_first");
  map.right_last = reader.field<Index>(fields, "right_last");
  map.least_count = reader.field<Index>(fields, "least_count");
  map.weight = reader.field<std::string>(fields, "weight");
  const json& target = reader.part(fields, "target");
  map.target.name = reader.field<std::string>(target, "name");
  map.target.task = reader.choice(task_names, target, "task");
  map.target.scaling = reader.scaling(reader.part(target, "scaling"));
  reader.require(map.target.scaling.low <= -1e150 && map.target.scaling.high >= 1e150,
                 "the target has ends where it cannot");
  map.target.reach = reader.field<double>(target, "reach");
  reader.require(map.target.reach > 0, "the reach of the target is not possible");
  if (target.contains("low")) {  // models of the first days know no range
    map.target.low = reader.field<double>(target, "low");
    map.target.high = reader.field<double>(target, "high");
    map.target.range_is_given = reader.field<bool>(target, "range_is_given");
    map.target.least_seen = reader.field<double>(target, "least_seen");
    map.target.most_seen = reader.field<double>(target, "most_seen");
    reader.require(map.target.low < map.target.high && map.target.least_seen <= map.target.high &&
                       map.target.most_seen >= map.target.low,
                   "the range of the target is empty");
  }
  map.target.negative = reader.field<std::string>(target, "negative");
  map.target.positive = reader.field<std::string>(target, "positive");
  constexpr int most_hash_bits = 30;
  reader.require(map.hash_bits >= 0 && map.hash_bits <= most_hash_bits, "the hash bits are not possible");
  const auto is_index = [](Index index) { return index >= 0 && index <= std::numeric_limits<std::int32_t>::max(); };
  const auto is_index_or_none = [&](Index index) { return index == -1 || is_index(index); };
  reader.require(is_index(map.index_base) && is_index_or_none(map.right_first) && is_index_or_none(map.right_last) &&
                     is_index(map.least_count),
                 "an index is not possible");

  std::vector<Column> columns;
  std::set<std::string> names;
  reader.require(reader.part(fields, "columns").is_array(), "its columns are no list");
  for (const json& entry : reader.part(fields, "columns")) {
    Column column;
    column.name = reader.field<std::string>(entry, "name");
    column.role = reader.choice(roles, entry, "role");
    column.right = reader.flag(entry, "right");
    column.marks_missing = reader.flag(entry, "marks_missing");
    if (column.role == Column::Role::number) {
      column.scaling = reader.scaling(reader.part(entry, "scaling"));
      column.values = reader.values(entry);
    }
    reader.require(names.insert(column.name).second, "two columns have one name");
    columns.push_back(std::move(column));
  }

  const auto text = reader.exactly<std::uint8_t>("categories.text");
  const auto ends = reader.exactly<std::int64_t>("categories.ends");
  const auto owners = reader.exactly<std::int32_t>("categories.columns");
  reader.require(ends.size() == owners.size(), "there are not as many categories as columns of categories");
  std::vector<std::pair<std::size_t, std::string>> categories;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    reader.require(ends[i] >= begin && ends[i] <= static_cast<std::int64_t>(text.size()), "a category is cut off");
    reader.require(owners[i] >= 0 && owners[i] < static_cast<std::int32_t>(columns.size()) && map.hash_bits == 0,
                   "a category belongs to no column");
    categories.emplace_back(owners[i], std::string(text.begin() + begin, text.begin() + ends[i]));
    begin = ends[i];
  }
  const auto left = reader.field<Index>(fields, "left_count");
  const auto right = reader.field<Index>(fields, "right_count");
  reader.require(is_index(left) && is_index(right), "the number of features is not possible");
  map.restore(std::move(columns), left, right, categories);
  reader.require(map.count_of_seen(FeatureMap::Side::left) == left &&
                     map.count_of_seen(FeatureMap::Side::right) == right && map.least_count >= 1,
                 "the columns and categories do not make as many features as it says");
  if (reader.has_tensor(used_slots_name))
    reader.require(map.restore_used_slots(reader.exactly<std::uint8_t>(used_slots_name)),
                   "the hashed features that rows have used are of another number");
  if (reader.has_tensor(flags_name))
    reader.require(map.restore_flags(reader.exactly<std::uint8_t>(flags_name)),
                   "the features whose values are 0 and 1 are of another number");
}

void read_model(const Reader& reader, const FeatureMap& map, Model<double>& model) {
  model.weights = reader.floats("weights");
  model.spectrum = reader.floats("spectrum");
  model.factors = reader.floats("factors");
  model.squares = reader.floats("squares");
  model.left_dim = map.left_dim();
  const std::vector<double> intercept = reader.floats("intercept");
  reader.require(intercept.size() == 1 && model.dim() == map.dim() &&
                     model.factors.size() == model.weights.size() * model.spectrum.size() &&
                     (model.squares.empty() || model.squares.size() == model.weights.size()) &&
                     (model.squares.empty() || !map.is_bilinear()),
                 "the arrays do not fit together");
  model.intercept = intercept.front();
  reader.require(model.is_finite(), "a parameter is not finite");
}

}  // namespace

std::string ModelFile::to_bytes() const {
  Safetensors parts;
  parts.metadata["format"] = "dyad";
  parts.metadata["format_version"] = std::to_string(format_version);
  parts.metadata[checksum_key] = checksum_placeholder;
  parts.metadata["written_by"] = std::string("dyad ") + DYAD_VERSION;
  parts.metadata["features"] = described(features).text();
  for (const auto& [name, value] : training) parts.metadata[training_prefix + name] = value;
  for (const auto& [name, value] : annotations) parts.metadata[annotation_prefix + name] = value;

  const Index dim = model.dim();
  const auto put = [&](const std::string& name, const std::vector<double>& numbers, std::vector<Index> shape) {
    parts.tensors[name] = precision == Precision::double_precision
                              ? make_tensor(numbers, std::move(shape))
                              : make_tensor(std::vector<float>(numbers.begin(), numbers.end()), std::move(shape));
  };
  put("intercept", {model.intercept}, {1});
  put("weights", model.weights, {dim});
  put("factors", model.factors, {dim, model.rank()});
  put("spectrum", model.spectrum, {model.rank()});
  put("squares", model.squares, {static_cast<Index>(model.squares.size())});
  const CategoryTensors categories(features);
  parts.tensors["categories.text"] = make_tensor(categories.text, {static_cast<Index>(categories.text.size())});
  parts.tensors["categories.ends"] = make_tensor(categories.ends, {static_cast<Index>(categories.ends.size())});
  parts.tensors["categories.columns"] =
      make_tensor(categories.columns, {static_cast<Index>(categories.columns.size())});
  const std::vector<std::uint8_t> used_slots = features.used_slots();
  if (!used_slots.empty())
    parts.tensors[used_slots_name] = make_tensor(used_slots, {static_cast<Index>(used_slots.size())});
  const std::vector<std::uint8_t> flags = features.flags();
  if (!flags.empty()) parts.tensors[flags_name] = make_tensor(flags, {static_cast<Index>(flags.size())});
  for (const auto& [name, numbers] : state)
    parts.tensors[state_prefix + name] = make_tensor(numbers, {static_cast<Index>(numbers.size())});
  std::string bytes = parts.to_bytes();
  write_checksum(bytes);
  return bytes;
}

ModelFile ModelFile::from_bytes(const std::string& bytes, const std::string& file) {
  const Safetensors parts = Safetensors::from_bytes(bytes, file);
  const Reader reader(parts, file);
  const std::string format = parts.metadata.contains("format") ? parts.metadata.at("format") : "";
  if (format == ModelContainer::format)
    reader.fail(
        "expected a model of dyad, got a container of several models or of a Learner, which the Python package wrote; "
        "read it with dyad.load, and write the model of one class with save(path, class_index=...)");
  if (format != "dyad") reader.fail("expected a model of dyad, got another safetensors file");
  const std::string& version = reader.text("format_version");
  int number = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  reader.require(error == std::errc() && end == version.data() + version.size() && number >= 1,
                 "its format version is no number");
  if (number > format_version)
    reader.fail(
        fmt::format("the model has format version {}, written by {}; this is dyad {}, which reads versions up "
                    "to {}: install a newer one",
                    number, parts.metadata.contains("written_by") ? parts.metadata.at("written_by") : "another program",
                    DYAD_VERSION, format_version));
  ModelFile result;
  if (parts.metadata.contains(checksum_key)) {
    reader.require(has_valid_checksum(bytes), "its checksum does not match its content; use a copy, or train again");
    result.checksum = parts.metadata.at(checksum_key);
  } else {
    reader.require(number < first_version_with_checksum, "it has no checksum; use a copy, or train again");
    result.warning = file +
                     ": the model has format version 1, which has no checksum, so that damage to the file may go "
                     "unnoticed; train again, or go on with --resume, to write one that has";
  }
  read_features(reader, result.features);
  read_model(reader, result.features, result.model);
  result.precision =
      reader.tensor("weights").dtype == dtype_of<float>() ? Precision::single_precision : Precision::double_precision;
  result.training = metadata_with_prefix(parts, training_prefix);
  result.annotations = metadata_with_prefix(parts, annotation_prefix);
  for (const auto& [name, tensor] : parts.tensors)
    if (name.starts_with(state_prefix))
      result.state[name.substr(std::string(state_prefix).size())] = reader.exactly<double>(name);
  return result;
}

void ModelFile::save(const std::string& path) const {
  OutputFile file(path);
  file.write(to_bytes());
  file.commit();
}

ModelFile ModelFile::load(const std::string& path) { return from_bytes(read_bytes(path), path); }

std::string ModelFile::read_bytes(const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw DataError(path, 0, 0, "the model " + why); };
  std::error_code unknown;
  const auto kind = std::filesystem::status(path, unknown).type();
  if (kind == std::filesystem::file_type::not_found) refuse("cannot be opened: there is no such file");
  if (kind == std::filesystem::file_type::directory) refuse("cannot be opened: this is a folder");
  // A pipe would let us wait for ever.
  if (kind != std::filesystem::file_type::regular) refuse("cannot be opened: this is no file");
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || fstat(file.number(), &status) != 0)
    refuse(fmt::format("cannot be opened: {}", std::strerror(errno)));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (static_cast<double>(size) > usable_memory_bytes()) refuse("is larger than the memory that this process may use");
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = read(file.number(), bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) refuse("cannot be read to its end");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace dyad
