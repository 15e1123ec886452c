#include "serialization/feature_schema.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "serialization/bounded_json.h"
#include "serialization/json_text.h"

namespace dyad {
namespace {

using nlohmann::json;

constexpr const char* schema_key = "features";
constexpr const char* categories_text_name = "categories.text";
constexpr const char* categories_ends_name = "categories.ends";
constexpr const char* categories_columns_name = "categories.columns";
// Files that dyad 0.1.0 wrote do not have these three.
constexpr const char* used_slots_name = "hash.used";
constexpr const char* binary_features_name = "flags";
constexpr const char* index_groups_name = "groups";  // also the field with the names
constexpr const char* values_field = "values";

/// Largest `hash_bits` that training accepts: 2^30 is the largest power of two below the limit of 2^31 - 1 features.
constexpr int max_stored_hash_bits = 30;
/// Largest center and scale that Scaling::is_valid() accepts. The scaling of a target does not clip, so its limits lie
/// beyond this magnitude.
constexpr double max_target_magnitude = 1e150;

template <typename Enum, std::size_t count>
const char* name_of(const std::array<std::pair<const char*, Enum>, count>& names, Enum value) {
  for (const auto& [name, named] : names)
    if (named == value) return name;
  throw std::logic_error("an enumeration value has no name in the model file format");
}

constexpr std::array<std::pair<const char*, Kind>, 4> kind_names{
    {{"gfm", Kind::gfm}, {"sensing", Kind::sensing}, {"phase", Kind::phase}, {"bilinear", Kind::bilinear}}};
constexpr std::array<std::pair<const char*, Layout>, 3> layout_names{
    {{"csv", Layout::table}, {"libsvm", Layout::sparse}, {"npy", Layout::matrix}}};
constexpr std::array<std::pair<const char*, Column::Role>, 2> role_names{
    {{"number", Column::Role::numeric}, {"category", Column::Role::categorical}}};

JsonText to_json(const Scaling& scaling) {
  return JsonText::object(
      {{"centre", scaling.center}, {"scale", scaling.scale}, {"low", scaling.low}, {"high", scaling.high}});
}

JsonText to_json(const FeatureMap& map) {
  std::vector<JsonText> columns;
  for (const Column& column : map.columns()) {
    std::vector<std::pair<std::string, JsonText>> fields{{"name", column.name},
                                                         {"role", name_of(role_names, column.role)}};
    if (column.is_right) fields.emplace_back("right", true);
    if (column.has_missing_indicator) fields.emplace_back("marks_missing", true);
    if (column.role == Column::Role::numeric) fields.emplace_back("scaling", to_json(column.scaling));
    if (column.values) {
      const std::vector<double> values = column.values->all();
      fields.emplace_back(values_field, JsonText::array(std::vector<JsonText>(values.begin(), values.end())));
    }
    columns.push_back(JsonText::object(fields));
  }
  std::vector<std::pair<std::string, JsonText>> fields{
      {"format", name_of(layout_names, map.layout)},
      {"kind", name_of(kind_names, map.kind)},
      {"columns", JsonText::array(columns)},
      {"left_count", map.seen_count(FeatureMap::Side::left)},
      {"right_count", map.seen_count(FeatureMap::Side::right)},
      {"least_count", map.min_feature_count},
      {"hash_bits", map.hash_bits},
      {"index_base", map.index_base},
      {"right_first", map.right_first},
      {"right_last", map.right_last},
      {"weight", map.weight},
      {"target", JsonText::object({{"name", map.target.name},
                                   {"task", name_of(task_names, map.target.task)},
                                   {"scaling", to_json(map.target.scaling)},
                                   {"reach", map.target.clip_limit},
                                   {"low", map.target.low},
                                   {"high", map.target.high},
                                   {"range_is_given", map.target.is_range_given},
                                   {"least_seen", map.target.min_seen},
                                   {"most_seen", map.target.max_seen},
                                   {"negative", map.target.negative},
                                   {"positive", map.target.positive}})}};
  if (map.index_groups)
    fields.emplace_back(index_groups_name, JsonText::array(std::vector<JsonText>(map.index_groups->names().begin(),
                                                                                 map.index_groups->names().end())));
  return JsonText::object(fields);
}

/// Categories as three tensors: their texts concatenated, the end offset of each text, and the column index of each.
struct CategoryTensors {
  std::vector<std::uint8_t> text;
  std::vector<std::int64_t> ends;
  std::vector<std::int32_t> columns;

  explicit CategoryTensors(const FeatureMap& map) {
    for (const auto side : {FeatureMap::Side::left, FeatureMap::Side::right})
      for (Index number = 0; number < map.category_count(side); ++number) {
        const auto [column, name] = map.category(side, number);
        text.insert(text.end(), name.begin(), name.end());
        ends.push_back(static_cast<std::int64_t>(text.size()));
        columns.push_back(static_cast<std::int32_t>(column));
      }
  }
};

Scaling read_scaling(const ModelReader& reader, const json& fields) {
  const Scaling result{reader.field<double>(fields, "centre"), reader.field<double>(fields, "scale"),
                       reader.field<double>(fields, "low"), reader.field<double>(fields, "high")};
  reader.require(
      result.is_valid(),
      "a scaling is invalid: expected finite 'centre', 'low' and 'high' with low <= centre <= high, and scale > 0");
  return result;
}

/// Distinct values of a numeric column; std::nullopt if the column does not have the field.
std::optional<TwoValues> read_values(const ModelReader& reader, const json& column) {
  if (!column.contains(values_field)) return std::nullopt;
  TwoValues result;
  reader.require(column[values_field].is_array(), "'values' of a column is not an array");
  for (const json& value : column[values_field])
    reader.require(value.is_number() && std::isfinite(value.get<double>()) && result.add(value.get<double>()),
                   "'values' of a column must be at most two distinct finite numbers");
  return result;
}

void read_target(const ModelReader& reader, const json& fields, Target& target) {
  target.name = reader.field<std::string>(fields, "name");
  target.task = reader.enum_field(task_names, fields, "task");
  target.scaling = read_scaling(reader, reader.child(fields, "scaling"));
  reader.require(target.scaling.low <= -max_target_magnitude && target.scaling.high >= max_target_magnitude,
                 "'scaling' of the target must not clip: expected low <= -1e150 and high >= 1e150");
  target.clip_limit = reader.field<double>(fields, "reach");
  reader.require(target.clip_limit > 0, "'reach' of the target must be above 0");
  if (fields.contains("low")) {  // files of the first development versions have no range
    target.low = reader.field<double>(fields, "low");
    target.high = reader.field<double>(fields, "high");
    target.is_range_given = reader.field<bool>(fields, "range_is_given");
    target.min_seen = reader.field<double>(fields, "least_seen");
    target.max_seen = reader.field<double>(fields, "most_seen");
    reader.require(target.low < target.high && target.min_seen <= target.high && target.max_seen >= target.low,
                   "the range of the target is invalid: expected low < high, and targets within it");
  }
  target.negative = reader.field<std::string>(fields, "negative");
  target.positive = reader.field<std::string>(fields, "positive");
}

std::vector<Column> read_columns(const ModelReader& reader, const json& entries) {
  std::vector<Column> columns;
  std::set<std::string> names;
  reader.require(entries.is_array(), "'columns' is not an array");
  for (const json& entry : entries) {
    Column column;
    column.name = reader.field<std::string>(entry, "name");
    column.role = reader.enum_field(role_names, entry, "role");
    column.is_right = reader.optional_flag(entry, "right");
    column.has_missing_indicator = reader.optional_flag(entry, "marks_missing");
    if (column.role == Column::Role::numeric) {
      column.scaling = read_scaling(reader, reader.child(entry, "scaling"));
      column.values = read_values(reader, entry);
    }
    reader.require(names.insert(column.name).second, "two columns have the name '" + column.name + "'");
    columns.push_back(std::move(column));
  }
  return columns;
}

/// Column index and text of each category, in the order of their features.
std::vector<std::pair<std::size_t, std::string>> read_categories(const ModelReader& reader, std::size_t column_count,
                                                                 bool is_hashed) {
  const auto text = reader.values<std::uint8_t>(categories_text_name);
  const auto ends = reader.values<std::int64_t>(categories_ends_name);
  const auto columns = reader.values<std::int32_t>(categories_columns_name);
  reader.require(ends.size() == columns.size(), "'categories.ends' and 'categories.columns' have different sizes");
  std::vector<std::pair<std::size_t, std::string>> categories;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    reader.require(ends[i] >= begin && ends[i] <= static_cast<std::int64_t>(text.size()),
                   "the text of a category is cut off");
    reader.require(columns[i] >= 0 && columns[i] < static_cast<std::int32_t>(column_count) && !is_hashed,
                   "a category refers to a column that does not exist, or categories are hashed");
    categories.emplace_back(columns[i], std::string(text.begin() + begin, text.begin() + ends[i]));
    begin = ends[i];
  }
  return categories;
}

/// Groups of libsvm indices; std::nullopt if the file has none.
std::optional<PriorGroups> read_index_groups(const ModelReader& reader, const json& fields) {
  if (!fields.contains(index_groups_name)) return std::nullopt;
  reader.require(fields[index_groups_name].is_array() && !fields[index_groups_name].empty(),
                 "'groups' is not a list of names");
  std::vector<std::string> names;
  for (const json& name : fields[index_groups_name]) {
    reader.require(name.is_string(), "'groups' contains a name that is not a text");
    names.push_back(name.get<std::string>());
  }
  auto groups = reader.values<std::int32_t>(index_groups_name);
  for (const std::int32_t group : groups)
    reader.require(group >= 0 && static_cast<std::size_t>(group) < names.size(),
                   "the group of a feature does not exist");
  return PriorGroups(std::move(names), std::move(groups));
}

}  // namespace

void add_feature_schema(const FeatureMap& map, Safetensors& file) {
  file.metadata[schema_key] = to_json(map).text();
  const CategoryTensors categories(map);
  file.tensors[categories_text_name] = make_tensor(categories.text, {static_cast<Index>(categories.text.size())});
  file.tensors[categories_ends_name] = make_tensor(categories.ends, {static_cast<Index>(categories.ends.size())});
  file.tensors[categories_columns_name] =
      make_tensor(categories.columns, {static_cast<Index>(categories.columns.size())});
  if (map.index_groups)
    file.tensors[index_groups_name] =
        make_tensor(map.index_groups->group_of_features(), {map.index_groups->feature_count()});
  const std::vector<std::uint8_t> used_slots = map.used_slots();
  if (!used_slots.empty())
    file.tensors[used_slots_name] = make_tensor(used_slots, {static_cast<Index>(used_slots.size())});
  const std::vector<std::uint8_t> binary_features = map.binary_features();
  if (!binary_features.empty())
    file.tensors[binary_features_name] = make_tensor(binary_features, {static_cast<Index>(binary_features.size())});
}

void read_feature_schema(const ModelReader& reader, FeatureMap& map) {
  const JsonDocument document(reader.metadata(schema_key));
  const json& fields = document.root();
  map.layout = reader.enum_field(layout_names, fields, "format");
  map.kind = reader.enum_field(kind_names, fields, "kind");
  map.hash_bits = reader.field<int>(fields, "hash_bits");
  map.index_base = reader.field<Index>(fields, "index_base");
  map.right_first = reader.field<Index>(fields, "right_first");
  map.right_last = reader.field<Index>(fields, "right_last");
  map.min_feature_count = reader.field<Index>(fields, "least_count");
  map.weight = reader.field<std::string>(fields, "weight");
  read_target(reader, reader.child(fields, "target"), map.target);
  reader.require(map.hash_bits >= 0 && map.hash_bits <= max_stored_hash_bits, "'hash_bits' must lie in [0, 30]");
  const auto is_index = [](Index index) { return index >= 0 && index <= std::numeric_limits<std::int32_t>::max(); };
  const auto is_index_or_none = [&](Index index) { return index == -1 || is_index(index); };
  reader.require(is_index(map.index_base) && is_index_or_none(map.right_first) && is_index_or_none(map.right_last) &&
                     is_index(map.min_feature_count),
                 "'index_base', 'right_first', 'right_last' or 'least_count' is outside [0, 2^31)");

  map.index_groups = read_index_groups(reader, fields);
  std::vector<Column> columns = read_columns(reader, reader.child(fields, "columns"));
  const auto categories = read_categories(reader, columns.size(), map.hash_bits > 0);
  const auto left = reader.field<Index>(fields, "left_count");
  const auto right = reader.field<Index>(fields, "right_count");
  reader.require(is_index(left) && is_index(right), "'left_count' or 'right_count' is outside [0, 2^31)");
  map.restore(std::move(columns), left, right, categories);
  reader.require(map.seen_count(FeatureMap::Side::left) == left && map.seen_count(FeatureMap::Side::right) == right &&
                     map.min_feature_count >= 1,
                 "'left_count' and 'right_count' do not match the columns and categories, or 'least_count' is below 1");
  if (reader.has_tensor(used_slots_name))
    reader.require(map.restore_used_slots(reader.values<std::uint8_t>(used_slots_name)),
                   "'hash.used' does not have one bit per hashed feature");
  if (reader.has_tensor(binary_features_name))
    reader.require(map.restore_binary_features(reader.values<std::uint8_t>(binary_features_name)),
                   "'flags' does not have one bit per sparse feature");
}

}  // namespace dyad
