#pragma once

#include <dyad/rows.h>

namespace dyad {

/// Products of rows X with dense matrices, on the calling thread. `Number` is the type that products are computed in:
/// that of the rows, or double for rows of floats. Dense rows of floats are then converted in blocks of at most
/// `max_converted_rows`.
inline constexpr Index max_converted_rows = 256;

/// out = X B. B is dim x width, out is count x width, both row-major.
template <typename Scalar, typename Number>
void project(const Rows<Scalar>& rows, const Number* B, Index width, Number* out);

/// out += X' C. C is count x width, out is dim x width, both row-major.
template <typename Scalar, typename Number>
void add_back_projection(const Rows<Scalar>& rows, const Number* C, Index width, Number* out);

/// out_i = sum_j q_j x_ij^2.
template <typename Scalar, typename Number>
void project_squares(const Rows<Scalar>& rows, const Number* q, Number* out);

/// out_j += sum_i c_i x_ij^2. c holds every `stride`-th number from `c` on.
template <typename Scalar, typename Number>
void add_back_projected_squares(const Rows<Scalar>& rows, const Number* c, Index stride, Number* out);

/// Number of these rows that fit in a core's second-level cache as numbers of `number_bytes`, so that X B and X' C read
/// them from memory only once.
template <typename Scalar>
Index cached_rows(const Rows<Scalar>& rows, std::size_t number_bytes = sizeof(Scalar));

}  // namespace dyad
