#pragma once

#include <dyad/rows.h>

namespace dyad {

/// out = X B for the rows X. B is dim x width, out is count x width, both row-major. Runs on the calling thread.
template <typename Scalar>
void project(const Rows<Scalar>& rows, const Scalar* B, Index width, Scalar* out);

/// out += X' C for the rows X. C is count x width, out is dim x width, both row-major. Runs on the calling thread.
template <typename Scalar>
void add_back_projection(const Rows<Scalar>& rows, const Scalar* C, Index width, Scalar* out);

/// out_i = sum_j q_j x_ij^2.
template <typename Scalar>
void project_squares(const Rows<Scalar>& rows, const Scalar* q, Scalar* out);

/// out_j += sum_i c_i x_ij^2. c holds every `stride`-th number from `c` on.
template <typename Scalar>
void add_back_projected_squares(const Rows<Scalar>& rows, const Scalar* c, Index stride, Scalar* out);

/// How many of these rows fit in a core's cache, so that both products read them from memory only once.
template <typename Scalar>
Index cached_rows(const Rows<Scalar>& rows);

}  // namespace dyad
