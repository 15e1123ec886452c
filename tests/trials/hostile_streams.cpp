#include "hostile_streams.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "base/stable_hash.h"

namespace dyad::trials {
namespace {

constexpr int numbers = 4;

/// x with four numbers, and y = x_0 + x_1 x_2 and noise, before it is changed.
struct Row {
  int i = 0;
  int count = 0;
  double x[numbers] = {};
  double y = 0;
};

HostileStream changed(std::string name, std::vector<std::string> options, const std::function<void(Row&)>& change,
                      const std::string& format = "libsvm") {
  const bool csv = format == "csv";
  const auto write = [change, csv](std::ostream& out, int rows) {
    std::mt19937 random(1);
    std::normal_distribution<> normal;
    out.precision(17);
    if (csv) out << "y,a,b,c,d\n";
    for (int i = 0; i < rows; ++i) {
      Row row{.i = i, .count = rows};
      for (double& x : row.x) x = normal(random);
      row.y = row.x[0] + row.x[1] * row.x[2] + 0.1 * normal(random);
      change(row);
      out << row.y;
      for (int j = 0; j < numbers; ++j) {
        csv ? out << ',' : out << ' ' << j << ':';
        out << row.x[j];
      }
      out << '\n';
    }
  };
  if (csv) options.insert(options.end(), {"--target", "y"});
  return {.name = std::move(name), .format = format, .options = std::move(options), .write = write};
}

HostileStream refused(HostileStream stream) {
  stream.fate = Fate::refused;
  return stream;
}

void scale(Row& row, double by) {
  for (double& x : row.x) x *= by;
}

double between(double low_exponent, double high_exponent, double share) {
  return std::pow(10, low_exponent + (high_exponent - low_exponent) * share);
}

std::vector<HostileStream> scales(const std::string& format) {
  const auto changed = [&](const char* name, std::vector<std::string> options,
                           const std::function<void(Row&)>& change) {
    return trials::changed(format == "csv" ? std::string(name) + ", csv" : name, std::move(options), change, format);
  };
  const auto share = [](const Row& row) { return static_cast<double>(row.i) / row.count; };
  return {
      changed("features of 1e-300", {}, [](Row& row) { scale(row, 1e-300); }),
      refused(changed("features of 1e300", {}, [](Row& row) { scale(row, 1e300); })),
      changed("features of 1e60", {}, [](Row& row) { scale(row, 1e60); }),
      changed("features of 1e30", {}, [](Row& row) { scale(row, 1e30); }),
      changed("features of 1e-60", {}, [](Row& row) { scale(row, 1e-60); }),
      refused(changed("features of all scales", {},
                      [](Row& row) {
                        for (int j = 0; j < numbers; ++j) row.x[j] *= between(-300, 300, j / (numbers - 1.0));
                      })),
      changed("features of many scales", {},
              [](Row& row) {
                for (int j = 0; j < numbers; ++j) row.x[j] *= between(-60, 60, j / (numbers - 1.0));
              }),
      refused(
          changed("features that grow without end", {}, [=](Row& row) { scale(row, between(-300, 300, share(row))); })),
      changed("features that grow", {}, [=](Row& row) { scale(row, between(-60, 60, share(row))); }),
      changed("features that shrink", {}, [=](Row& row) { scale(row, between(60, -60, share(row))); }),
      changed("denormal features", {}, [](Row& row) { scale(row, 1e-320); }),
      changed("denormal everything", {},
              [](Row& row) {
                scale(row, 1e-320);
                row.y *= 1e-320;
              }),
      changed("targets of 1e-300", {}, [](Row& row) { row.y *= 1e-300; }),
      refused(changed("targets of 1e300", {}, [](Row& row) { row.y *= 1e300; })),
      refused(changed("targets that grow", {}, [=](Row& row) { row.y *= between(-300, 300, share(row)); })),
      refused(changed("targets that shrink", {}, [=](Row& row) { row.y *= between(300, -300, share(row)); })),
      refused(changed("all of it large", {},
                      [](Row& row) {
                        scale(row, 1e200);
                        row.y *= 1e200;
                      })),
      refused(changed("a row of 1e300 now and then", {},
                      [](Row& row) {
                        if (row.i % 500 == 7) scale(row, 1e300);
                      })),
      changed("a row of 1e60 now and then", {},
              [](Row& row) {
                if (row.i % 500 == 7) scale(row, 1e60);
              }),
      refused(changed("a target of 1e300 now and then", {},
                      [](Row& row) {
                        if (row.i % 500 == 7) row.y = 1e300;
                      })),
      changed("a large offset", {}, [](Row& row) { row.x[0] += 1e12; }),
      refused(changed("measurements of 1e300", {"--kind", "sensing"}, [](Row& row) { row.y *= 1e300; })),
      changed("phases of 1e60", {"--kind", "phase"},
              [](Row& row) {
                scale(row, 1e60);
                row.y = std::abs(row.y);
              }),
      changed("phases that are negative", {"--kind", "phase"}, [](Row& row) { row.y = -std::abs(row.y); }),
      changed("two sides of 1e60", {"--kind", "bilinear", "--right", format == "csv" ? "c,d" : "2-"},
              [](Row& row) { scale(row, 1e60); }),
  };
}

std::vector<HostileStream> orders() {
  const std::vector<std::string> classes{"--task", "classification"};
  return {
      changed("sorted classes", classes, [](Row& row) { row.y = 2 * row.i < row.count ? 0 : 1; }),
      changed("one class", classes, [](Row& row) { row.y = 1; }),
      changed("one class but for the last row", classes, [](Row& row) { row.y = row.i + 1 < row.count ? 0 : 1; }),
      changed("classes without doubt", classes,
              [](Row& row) {
                row.y = row.x[0] > 0 ? 1 : 0;
                scale(row, 1e6);
              }),
      changed("sorted numbers", {}, [](Row& row) { row.y = row.x[0] = row.i; }),
      changed("the opposite every other row", {},
              [](Row& row) {
                row.x[0] = row.x[1] = row.x[2] = row.x[3] = 1;
                row.y = row.i % 2 == 0 ? 1 : -1;
              }),
      changed("another model every hundred rows", {}, [](Row& row) { row.y *= row.i / 100 % 2 == 0 ? 1e3 : -1e3; }),
      changed("a model, then its opposite", {}, [](Row& row) { row.y *= 2 * row.i < row.count ? 1 : -1; }),
      changed("nothing, then everything", {},
              [](Row& row) {
                if (row.i < row.count / 2) scale(row, row.y = 0);
              }),
      changed("the same row", {},
              [](Row& row) {
                for (double& x : row.x) x = 3;
                row.y = 2;
              }),
      changed("nothing but zeros", {}, [](Row& row) { scale(row, row.y = 0); }),
      changed("columns that are the same", {}, [](Row& row) { row.x[1] = row.x[2] = row.x[3] = row.x[0]; }),
  };
}

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

/// Names of eight bytes that a well-known finaliser of hashes sends to one slot, whatever the size of the table.
std::string colliding_name(std::uint64_t number) {
  std::uint64_t key = number * 0x9e3779b97f4a7c15U >> 31;  // below 2^33: the upper bits are those of the slot
  const auto unmultiplied = [](std::uint64_t value, std::uint64_t factor) {
    std::uint64_t inverse = factor;
    for (int i = 0; i < 6; ++i) inverse *= 2 - factor * inverse;
    return value * inverse;
  };
  key = unmultiplied(key, 0xc4ceb9fe1a85ec53U);
  key ^= key >> 33;
  key = unmultiplied(key, 0xff51afd7ed558ccdU);
  key ^= key >> 33;
  std::string name(sizeof key, '\0');
  std::memcpy(name.data(), &key, sizeof key);
  for (char& c : name)
    if (c == ',' || c == '"' || c == '\n' || c == '\r' || c == ' ' || c == '\t') c = 'x';
  return name;
}

std::vector<HostileStream> names() {
  const std::vector<std::string> plain{"--target", "y", "--ignore", "w", "--categorical", "a,b"};
  const std::vector<std::string> hashed{"--target", "y", "--ignore", "w", "--categorical", "a,b", "--hash-bits", "10"};
  const auto new_names = [](std::ostream& out, int i, std::mt19937& random) {
    out << "user" << i << ",m" << random() % 50 << ",1," << random() % 5;
  };
  // All of them in one bucket, which takes some looking for.
  const auto one_bucket = [](std::ostream& out, int, std::mt19937& random) {
    std::string name;
    do name = std::to_string(random());
    while ((stable_hash(name, 0) & 1023U) != 0);
    out << name << ",m,1," << random() % 5;
  };
  const auto weighted = [](std::ostream& out, int i, std::mt19937& random) {
    const double a = static_cast<double>(random()) / 4e9;
    out << a << ",m" << random() % 3 << ',' << (i % 3 == 0 ? 0 : between(-300, 300, i % 100 / 99.0)) << ',' << 2 * a;
  };
  return {
      table("a new name in every row", plain, new_names, 20000),
      table("names in one bucket", hashed, one_bucket, 2000),
      table(
          "names that collide by design", plain,
          [](std::ostream& out, int i, std::mt19937& random) {
            out << colliding_name(static_cast<std::uint64_t>(i)) << ",m,1," << random() % 5;
          },
          20000),
      refused(table("weights of all scales", {"--target", "y", "--weight", "w"}, weighted)),
      table("a name of a megabyte", plain,
            [](std::ostream& out, int i, std::mt19937& random) {
              out << (i == 9 ? std::string(1'000'000, 'n') : "a") << ",m,1," << random() % 5;
            }),
      refused(table(
          "a word now and then among numbers", {"--target", "y"},
          [](std::ostream& out, int i, std::mt19937&) { out << (i % 50 == 7 ? "word" : "1.5") << ",m,1," << i; })),
      table("nothing but gaps", {"--target", "y"},
            [](std::ostream& out, int i, std::mt19937&) { out << ",,1," << i % 7; }),
      refused(table("targets that are not finite", {"--target", "y"},
                    [](std::ostream& out, int i, std::mt19937&) { out << i << ",m,1," << (i == 200 ? "inf" : "1"); })),
  };
}

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
  const auto far = [](std::ostream& out, int rows) {
    for (int i = 0; i < rows; ++i) out << i % 5 << " 1:1 " << std::numeric_limits<std::int32_t>::max() - 1 << ":1\n";
  };
  const auto empty = [](std::ostream& out, int rows) {
    for (int i = 0; i < rows; ++i) out << i % 5 << '\n';
  };
  return {{.name = "an index twice in a row", .format = "libsvm", .write = duplicate, .fate = Fate::refused},
          {.name = "rows of a million entries",
           .format = "libsvm",
           .options = {"--rank", "1"},
           .write = wide,
           .rows = 4,
           .ways = {"auto", "kalman", "moment"}},
          {.name = "an index of two thousand millions",
           .format = "libsvm",
           .write = far,
           .ways = {"auto"},
           .fate = Fate::too_large},
          {.name = "an index of two thousand millions, hashed",
           .format = "libsvm",
           .options = {"--hash-bits", "8"},
           .write = far},
          {.name = "rows without entries", .format = "libsvm", .write = empty}};
}

}  // namespace

std::vector<HostileStream> hostile_streams() {
  std::vector<HostileStream> all;
  for (auto part : {scales("libsvm"), scales("csv"), orders(), names(), shapes()})
    all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  return all;
}

}  // namespace dyad::trials
