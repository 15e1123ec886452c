#include "rating_rows.h"

#include <random>
#include <sstream>

namespace dyad::trials {

std::string rating_rows(bool is_csv, int first, int last) {
  std::ostringstream text;
  if (is_csv) text << "user,movie,age,rating\n";
  std::mt19937 random(7);
  std::uniform_int_distribution<> uniform(0, 1 << 20);
  for (int i = 0; i < last; ++i) {
    const int user = uniform(random) % (20 + i / 100);
    const int movie = uniform(random) % 30;
    const int age = uniform(random) % 50;
    const double noise = uniform(random) % 100 / 100.0;
    if (i < first) continue;
    const double rating = 3 + user % 3 - movie % 2 + (user % 2 == movie % 3 ? 1 : 0) + 0.02 * age + noise;
    if (is_csv)
      text << 'u' << user << ",m" << movie << ',' << age << ',' << rating << '\n';
    else
      text << rating << ' ' << movie << ":1 " << 30 + user << ":1 " << 2000 << ':' << age / 50.0 << '\n';
  }
  return text.str();
}

}  // namespace dyad::trials
