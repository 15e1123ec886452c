#include "hostile_streams.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "base/stable_hash.h"

namespace dyad::trials {
namespace {

constexpr int features = 4;

/// A row with normal features and the target y = x_0 + x_1 x_2 + noise, before it is changed.
struct Row {
  int i = 0;      ///< index of the row
  int count = 0;  ///< number of rows
  double x[features] = {};
  double y = 0;
};

/// Stream of rows generated as described at Row and modified by `change`.
HostileStream changed(std::string name, std::vector<std::string> options, const std::function<void(Row&)>& change,
                      const std::string& format = "libsvm") {
  const bool is_csv = format == "csv";
  const auto write = [change, is_csv](std::ostream& out, int rows) {
    std::mt19937 random(1);
    std::normal_distribution<> normal;
    out.precision(17);
    if (is_csv) out << "y,a,b,c,d\n";
    for (int i = 0; i < rows; ++i) {
      Row row{.i = i, .count = rows};
      for (double& x : row.x) x = normal(random);
      row.y = row.x[0] + row.x[1] * row.x[2] + 0.1 * normal(random);
      change(row);
      out << row.y;
      for (int j = 0; j < features; ++j) {
        is_csv ? out << ',' : out << ' ' << j << ':';
        out << row.x[j];
      }
      out << '\n';
    }
  };
  if (is_csv) options.insert(options.end(), {"--target", "y"});
  return {.name = std::move(name), .format = format, .options = std::move(options), .write = write};
}

/// The same stream, which all solvers must reject.
HostileStream rejected(HostileStream stream) {
  stream.expected = Expected::rejected;
  return stream;
}

void scale(Row& row, double factor) {
  for (double& x : row.x) x *= factor;
}

/// 10^e with e interpolated between the exponents; position is in [0, 1].
double power_of_ten(double first_exponent, double last_exponent, double position) {
  return std::pow(10, first_exponent + (last_exponent - first_exponent) * position);
}

/// Features and targets of extreme magnitudes.
std::vector<HostileStream> scales(const std::string& format) {
  const auto changed = [&](const char* name, std::vector<std::string> options,
                           const std::function<void(Row&)>& change) {
    return trials::changed(format == "csv" ? std::string(name) + ", csv" : name, std::move(options), change, format);
  };
  const auto position = [](const Row& row) { return static_cast<double>(row.i) / row.count; };
  return {
      changed("features of 1e-300", {}, [](Row& row) { scale(row, 1e-300); }),
      rejected(changed("features of 1e300", {}, [](Row& row) { scale(row, 1e300); })),
      changed("features of 1e60", {}, [](Row& row) { scale(row, 1e60); }),
      changed("features of 1e30", {}, [](Row& row) { scale(row, 1e30); }),
      changed("features of 1e-60", {}, [](Row& row) { scale(row, 1e-60); }),
      rejected(changed("features from 1e-300 to 1e300 in a row", {},
                       [](Row& row) {
                         for (int j = 0; j < features; ++j) row.x[j] *= power_of_ten(-300, 300, j / (features - 1.0));
                       })),
      changed("features from 1e-60 to 1e60 in a row", {},
              [](Row& row) {
                for (int j = 0; j < features; ++j) row.x[j] *= power_of_ten(-60, 60, j / (features - 1.0));
              }),
      rejected(changed("features that grow to 1e300", {},
                       [=](Row& row) { scale(row, power_of_ten(-300, 300, position(row))); })),
      changed("features that grow to 1e60", {}, [=](Row& row) { scale(row, power_of_ten(-60, 60, position(row))); }),
      changed("features that shrink from 1e60", {},
              [=](Row& row) { scale(row, power_of_ten(60, -60, position(row))); }),
      changed("denormal features", {}, [](Row& row) { scale(row, 1e-320); }),
      changed("denormal features and targets", {},
              [](Row& row) {
                scale(row, 1e-320);
                row.y *= 1e-320;
              }),
      changed("targets of 1e-300", {}, [](Row& row) { row.y *= 1e-300; }),
      rejected(changed("targets of 1e300", {}, [](Row& row) { row.y *= 1e300; })),
      rejected(changed("targets that grow to 1e300", {},
                       [=](Row& row) { row.y *= power_of_ten(-300, 300, position(row)); })),
      rejected(changed("targets that shrink from 1e300", {},
                       [=](Row& row) { row.y *= power_of_ten(300, -300, position(row)); })),
      rejected(changed("features and targets of 1e200", {},
                       [](Row& row) {
                         scale(row, 1e200);
                         row.y *= 1e200;
                       })),
      rejected(changed("features of 1e300 in some rows", {},
                       [](Row& row) {
                         if (row.i % 500 == 7) scale(row, 1e300);
                       })),
      changed("features of 1e60 in some rows", {},
              [](Row& row) {
                if (row.i % 500 == 7) scale(row, 1e60);
              }),
      rejected(changed("targets of 1e300 in some rows", {},
                       [](Row& row) {
                         if (row.i % 500 == 7) row.y = 1e300;
                       })),
      changed("a feature with an offset of 1e12", {}, [](Row& row) { row.x[0] += 1e12; }),
      rejected(changed("measurements of 1e300", {"--kind", "sensing"}, [](Row& row) { row.y *= 1e300; })),
      changed("phases of 1e60", {"--kind", "phase"},
              [](Row& row) {
                scale(row, 1e60);
                row.y = std::abs(row.y);
              }),
      changed("phases with negative targets", {"--kind", "phase"}, [](Row& row) { row.y = -std::abs(row.y); }),
      changed("bilinear features of 1e60", {"--kind", "bilinear", "--right", format == "csv" ? "c,d" : "2-"},
              [](Row& row) { scale(row, 1e60); }),
  };
}

/// Sorted, constant and contradictory rows.
std::vector<HostileStream> orders() {
  const std::vector<std::string> classes{"--task", "classification"};
  return {
      changed("sorted classes", classes, [](Row& row) { row.y = 2 * row.i < row.count ? 0 : 1; }),
      changed("one class", classes, [](Row& row) { row.y = 1; }),
      changed("one class except in the last row", classes, [](Row& row) { row.y = row.i + 1 < row.count ? 0 : 1; }),
      changed("separable classes", classes,
              [](Row& row) {
                row.y = row.x[0] > 0 ? 1 : 0;
                scale(row, 1e6);
              }),
      changed("sorted targets", {}, [](Row& row) { row.y = row.x[0] = row.i; }),
      changed("equal rows with alternating targets", {},
              [](Row& row) {
                row.x[0] = row.x[1] = row.x[2] = row.x[3] = 1;
                row.y = row.i % 2 == 0 ? 1 : -1;
              }),
      changed("a model that changes its sign every 100 rows", {},
              [](Row& row) { row.y *= row.i / 100 % 2 == 0 ? 1e3 : -1e3; }),
      changed("a model that changes its sign once", {}, [](Row& row) { row.y *= 2 * row.i < row.count ? 1 : -1; }),
      changed("zeros in the first half", {},
              [](Row& row) {
                if (row.i < row.count / 2) scale(row, row.y = 0);
              }),
      changed("equal rows", {},
              [](Row& row) {
                for (double& x : row.x) x = 3;
                row.y = 2;
              }),
      changed("only zeros", {}, [](Row& row) { scale(row, row.y = 0); }),
      changed("equal columns", {}, [](Row& row) { row.x[1] = row.x[2] = row.x[3] = row.x[0]; }),
  };
}

/// Stream of csv rows with the columns a, b, w and y.
HostileStream table(std::string name, std::vector<std::string> options,
                    std::function<void(std::ostream&, int, std::mt19937&)> row, int rows = 3000) {
  const auto write = [row](std::ostream& out, int count) {
    std::mt19937 random(2);
    out << "a,b,w,y\n";
    for (int i = 0; i < count; ++i) {
      row(out, i, random);
      out << '\n';
    }
  };
  return {.name = std::move(name), .format = "csv", .options = std::move(options), .write = write, .rows = rows};
}

/// Name of eight bytes that the 64-bit finalizer of MurmurHash3 (fmix64) maps to a value below 2^33. These names
/// collide in a table that is indexed by the upper bits. The function inverts the finalizer. Separators of csv files
/// are replaced afterwards, so that a few names do not collide.
std::string colliding_name(std::uint64_t number) {
  std::uint64_t key = number * 0x9e3779b97f4a7c15U >> 31;  // below 2^33: the last xor-shift of fmix64 is the identity
  // Division by an odd factor modulo 2^64, whose inverse is computed by Newton's iteration.
  const auto divide = [](std::uint64_t value, std::uint64_t factor) {
    std::uint64_t inverse = factor;
    for (int i = 0; i < 6; ++i) inverse *= 2 - factor * inverse;
    return value * inverse;
  };
  key = divide(key, 0xc4ceb9fe1a85ec53U);
  key ^= key >> 33;
  key = divide(key, 0xff51afd7ed558ccdU);
  key ^= key >> 33;
  std::string name(sizeof key, '\0');
  std::memcpy(name.data(), &key, sizeof key);
  for (char& c : name)
    if (c == ',' || c == '"' || c == '\n' || c == '\r' || c == ' ' || c == '\t') c = 'x';
  return name;
}

/// Categories, weights and cells of tables.
std::vector<HostileStream> tables() {
  const std::vector<std::string> categorical{"--target", "y", "--ignore", "w", "--categorical", "a,b"};
  const std::vector<std::string> hashed{"--target", "y", "--ignore", "w", "--categorical", "a,b", "--hash-bits", "10"};
  const auto new_category = [](std::ostream& out, int i, std::mt19937& random) {
    out << "user" << i << ",m" << random() % 50 << ",1," << random() % 5;
  };
  // Draws names until one has the hash bucket 0 of 1024 (--hash-bits 10).
  const auto one_bucket = [](std::ostream& out, int, std::mt19937& random) {
    std::string name;
    do name = std::to_string(random());
    while ((stable_hash(name, 0) & 1023U) != 0);
    out << name << ",m,1," << random() % 5;
  };
  const auto weighted = [](std::ostream& out, int i, std::mt19937& random) {
    const double a = static_cast<double>(random()) / 4e9;
    out << a << ",m" << random() % 3 << ',' << (i % 3 == 0 ? 0 : power_of_ten(-300, 300, i % 100 / 99.0)) << ','
        << 2 * a;
  };
  return {
      table("a new category in every row", categorical, new_category, 20000),
      table("categories in one hash bucket", hashed, one_bucket, 2000),
      table(
          "categories that collide under a public hash", categorical,
          [](std::ostream& out, int i, std::mt19937& random) {
            out << colliding_name(static_cast<std::uint64_t>(i)) << ",m,1," << random() % 5;
          },
          20000),
      rejected(table("weights from 1e-300 to 1e300", {"--target", "y", "--weight", "w"}, weighted)),
      table("a category of a megabyte", categorical,
            [](std::ostream& out, int i, std::mt19937& random) {
              out << (i == 9 ? std::string(1'000'000, 'n') : "a") << ",m,1," << random() % 5;
            }),
      rejected(table(
          "text in some cells of a numeric column", {"--target", "y"},
          [](std::ostream& out, int i, std::mt19937&) { out << (i % 50 == 7 ? "word" : "1.5") << ",m,1," << i; })),
      table("only empty cells", {"--target", "y"},
            [](std::ostream& out, int i, std::mt19937&) { out << ",,1," << i % 7; }),
      rejected(table("an infinite target", {"--target", "y"},
                     [](std::ostream& out, int i, std::mt19937&) { out << i << ",m,1," << (i == 200 ? "inf" : "1"); })),
  };
}

/// Rows of unusual sizes and indices.
std::vector<HostileStream> shapes() {
  const auto duplicate = [](std::ostream& out, int rows) {
    for (int i = 0; i < rows; ++i) out << i % 5 << " 1:1 1:2\n";
  };
  const auto wide = [](std::ostream& out, int rows) {
    constexpr int width = 1'000'000;
    for (int i = 0; i < rows; ++i) {
      out << i % 2;
      for (int j = 0; j < width; ++j) out << ' ' << j << ':' << (i + j) % 10;
      out << '\n';
    }
  };
  const auto large_index = [](std::ostream& out, int rows) {
    for (int i = 0; i < rows; ++i) out << i % 5 << " 1:1 " << std::numeric_limits<std::int32_t>::max() - 1 << ":1\n";
  };
  const auto empty = [](std::ostream& out, int rows) {
    for (int i = 0; i < rows; ++i) out << i % 5 << '\n';
  };
  return {
      {.name = "a repeated index", .format = "libsvm", .write = duplicate, .expected = Expected::rejected},
      {.name = "rows of a million entries",
       .format = "libsvm",
       .options = {"--rank", "1"},
       .write = wide,
       .rows = 4,
       .solvers = {"auto", "kalman", "moment"}},
      {.name = "an index near 2^31",
       .format = "libsvm",
       .write = large_index,
       .solvers = {"auto"},
       .expected = Expected::out_of_memory},
      {.name = "an index near 2^31, hashed", .format = "libsvm", .options = {"--hash-bits", "8"}, .write = large_index},
      {.name = "rows without entries", .format = "libsvm", .write = empty}};
}

}  // namespace

std::vector<HostileStream> hostile_streams() {
  std::vector<HostileStream> all;
  for (auto group : {scales("libsvm"), scales("csv"), orders(), tables(), shapes()})
    all.insert(all.end(), std::make_move_iterator(group.begin()), std::make_move_iterator(group.end()));
  return all;
}

}  // namespace dyad::trials
