#pragma once

#include <dyad/rows.h>

namespace dyad {

// Products of rows X (count x dim, dense or sparse) with dense matrices. Each product runs on the calling thread.
// Several threads may call the functions at the same time. `Number` is the type of the computation: the type of the
// rows, or double for rows of floats.

/// Dense float rows are converted to double in blocks of at most this many rows, which limits the memory of the copy.
/// Sensitivity: docs/constants.md.
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

/// out_j += sum_i c_i x_ij^2, where c_i = c[i * stride].
template <typename Scalar, typename Number>
void add_back_projected_squares(const Rows<Scalar>& rows, const Number* c, Index stride, Number* out);

/// Number of rows per block such that a block of dense rows fits in the second-level cache of a core. X B followed by
/// X' C then reads the rows from memory only once. The number is constant for sparse rows. `number_bytes` is the size
/// of a number during the computation.
template <typename Scalar>
Index rows_per_cache_block(const Rows<Scalar>& rows, std::size_t number_bytes = sizeof(Scalar));

}  // namespace dyad
