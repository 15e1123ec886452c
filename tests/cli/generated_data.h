#pragma once

#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "temporary_folder.h"

namespace dyad::test {

/// Fixture that runs commands on generated files in a temporary folder.
class CommandTest : public TemporaryFolderTest {
 protected:
  [[nodiscard]] static nlohmann::json run_json(const std::string& arguments) {
    const Result result = run_dyad(arguments + " --json --quiet");
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  /// The first line that begins with this label, or an empty string.
  [[nodiscard]] static std::string line_of(const std::string& text, const std::string& label) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(label + " ")) return line;
    return "";
  }
};

/// Table with price = 1000 + 3 area rooms + 200 district + noise of standard deviation 5.
inline std::string houses(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<> normal;
  std::uniform_int_distribution<> district(0, 4);
  std::ostringstream text;
  text << "area,rooms,district,price\n";
  for (int i = 0; i < count; ++i) {
    const double area = 80 + 20 * normal(random);
    const double rooms = 4 + normal(random);
    const int where = district(random);
    text << area << ',' << rooms << ",d" << where << ',' << 1000 + 3 * area * rooms + 200 * where + 5 * normal(random)
         << '\n';
  }
  return text.str();
}

/// Ratings of movies by users. New users and movies occur in later rows. The rating does not depend on the column
/// `noise`.
inline std::string ratings(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<> normal;
  std::ostringstream text;
  text << "user,movie,noise,rating\n";
  for (int i = 0; i < count; ++i) {
    std::uniform_int_distribution<> user(0, 20 + i / 500);
    std::uniform_int_distribution<> movie(0, 10 + i / 1000);
    const int u = user(random);
    const int m = movie(random);
    text << 'u' << u << ",m" << m << ',' << normal(random) << ','
         << 5 + u % 3 - m % 4 + (u % 2 == m % 2 ? 1 : -1) + 0.1 * normal(random) << '\n';
  }
  return text.str();
}

/// Two classes with the log-odds 3 length links + links - 0.5.
inline std::string mails(int count, unsigned seed, const std::string& negative, const std::string& positive) {
  std::mt19937 random(seed);
  std::normal_distribution<> normal;
  std::uniform_real_distribution<> uniform;
  std::ostringstream text;
  text << "length,links,kind\n";
  for (int i = 0; i < count; ++i) {
    const double length = normal(random);
    const double links = normal(random);
    const bool is_positive = uniform(random) < 1 / (1 + std::exp(-(3 * length * links + links - 0.5)));
    text << length << ',' << links << ',' << (is_positive ? positive : negative) << '\n';
  }
  return text.str();
}

inline std::vector<double> numbers_of(const std::string& text) {
  std::istringstream lines(text);
  std::vector<double> numbers;
  for (std::string line; std::getline(lines, line);) numbers.push_back(std::stod(line));
  return numbers;
}

inline std::vector<std::string> cells_of(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> cells;
  for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
  return cells;
}

/// Cells of one column of CSV without quotes.
inline std::vector<std::string> text_column_of(const std::string& csv, const std::string& name) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = cells_of(line);
  const auto at = static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  std::vector<std::string> column;
  while (std::getline(lines, line)) column.push_back(cells_of(line).at(at));
  return column;
}

inline std::vector<double> column_of(const std::string& csv, const std::string& name) {
  std::vector<double> numbers;
  for (const std::string& cell : text_column_of(csv, name)) numbers.push_back(std::stod(cell));
  return numbers;
}

inline std::string without_column(const std::string& csv, const std::string& name) {
  std::istringstream lines(csv);
  std::ostringstream result;
  std::string line;
  std::size_t at = 0;
  for (bool is_header = true; std::getline(lines, line); is_header = false) {
    std::vector<std::string> cells = cells_of(line);
    if (is_header) at = static_cast<std::size_t>(std::find(cells.begin(), cells.end(), name) - cells.begin());
    cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t i = 0; i < cells.size(); ++i) result << (i > 0 ? "," : "") << cells[i];
    result << '\n';
  }
  return result.str();
}

}  // namespace dyad::test
