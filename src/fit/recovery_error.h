#pragma once

#include <dyad/model.h>

namespace dyad {

/// All from the factors, in O(k^2 d).

/// |M - M*|_2.
double interaction_error(const Model<double>& model, const Model<double>& truth);

/// Tangent of the largest canonical angle between the spans of U and U*; infinite where they share no direction.
double tan_largest_angle(const Model<double>& model, const Model<double>& truth);

/// |a - a*| with M = aa', the smaller over the sign of a.
double amplitude_error(const Model<double>& model, const Model<double>& truth);

}  // namespace dyad
