#include "rows/products.h"

#include <algorithm>
#include <mutex>

#include <cblas.h>
#include <Eigen/Core>

#include "base/lanes.h"

namespace dyad {
namespace {

/// Concurrent products share buffers, which only OpenBLAS's pthread build locks. Debian's serial build silently mixes
/// them up, so with any other build products wait for each other.
class BlasTurn {
 public:
  BlasTurn() {
    static const bool takes_turns = openblas_get_parallel() != OPENBLAS_THREAD;
    if (takes_turns) lock_ = std::unique_lock(mutex());
  }

 private:
  static std::mutex& mutex() {
    static std::mutex the_mutex;
    return the_mutex;
  }
  std::unique_lock<std::mutex> lock_;
};

/// OpenBLAS runs a product of at most 2^18 multiply-adds on the calling thread (interface/gemm.c: SMP_THRESHOLD_MIN
/// times GEMM_MULTITHREAD_THRESHOLD). Threads belong to base/workers.h, and the number of OpenBLAS's threads belongs to
/// the host process, so that larger products are split. With 1,024 features the moment sums and products of
/// Gauss-Newton then take 1.08 to 1.10 times as long at rank 8 as with one call and openblas_set_num_threads(1), and
/// 0.78 to 1.05 times at rank 16 (`make bench-compare REV=895cd28 FILTER=1024`, minimum of 5 runs).
constexpr double max_multiply_adds = 1 << 18;

blasint blas(Index n) { return static_cast<blasint>(n); }

void call_gemm(CBLAS_TRANSPOSE transpose, Index m, Index n, Index k, const float* A, Index lda, const float* B,
               Index ldb, float beta, float* C, Index ldc) {
  cblas_sgemm(CblasRowMajor, transpose, CblasNoTrans, blas(m), blas(n), blas(k), 1, A, blas(lda), B, blas(ldb), beta, C,
              blas(ldc));
}

void call_gemm(CBLAS_TRANSPOSE transpose, Index m, Index n, Index k, const double* A, Index lda, const double* B,
               Index ldb, double beta, double* C, Index ldc) {
  cblas_dgemm(CblasRowMajor, transpose, CblasNoTrans, blas(m), blas(n), blas(k), 1, A, blas(lda), B, blas(ldb), beta, C,
              blas(ldc));
}

/// C (m x n) = op(A) (m x k) B (k x n) + beta C, all stored by rows. Halves a dimension until the parts are small
/// enough: that of the rows first, so that no part of C is accumulated in several calls.
template <typename Scalar>
void gemm(CBLAS_TRANSPOSE transpose, Index m, Index n, Index k, const Scalar* A, Index lda, const Scalar* B, Index ldb,
          Scalar beta, Scalar* C, Index ldc) {
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <= max_multiply_adds)
    return call_gemm(transpose, m, n, k, A, lda, B, ldb, beta, C, ldc);
  constexpr Index unit = 16;  // a multiple of the rows and columns that OpenBLAS's kernels compute at a time
  const auto half = [](Index size) { return (size / 2 + unit - 1) / unit * unit; };
  const Index row_of_A = transpose == CblasTrans ? 1 : lda;
  const Index column_of_A = transpose == CblasTrans ? lda : 1;
  if (m > unit && (m >= n || transpose == CblasNoTrans)) {
    const Index first = half(m);
    gemm(transpose, first, n, k, A, lda, B, ldb, beta, C, ldc);
    gemm(transpose, m - first, n, k, A + first * row_of_A, lda, B, ldb, beta, C + first * ldc, ldc);
  } else if (n >= k) {
    const Index first = half(n);
    gemm(transpose, m, first, k, A, lda, B, ldb, beta, C, ldc);
    gemm(transpose, m, n - first, k, A, lda, B + first, ldb, beta, C + first, ldc);
  } else {
    const Index first = half(k);
    gemm(transpose, m, n, first, A, lda, B, ldb, beta, C, ldc);
    gemm(transpose, m, n, k - first, A + first * column_of_A, lda, B + first * ldb, ldb, Scalar(1), C, ldc);
  }
}

template <typename Scalar>
Scalar dot_squares(const Scalar* q, const Scalar* x, Index dim) {
  using Array = Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>>;
  return (Array(q, dim) * Array(x, dim).square()).sum();
}

/// What sparse rows behind row i will ask for.
template <typename Scalar>
void fetch_soon(const Rows<Scalar>& rows, Index i, const Scalar* numbers, Index width) {
  constexpr Index ahead = 8;
  if (i + ahead < rows.count())
    rows.for_each_entry(i + ahead, [&](Index j, Scalar) { fetch_numbers(numbers + j * width, width); });
}

}  // namespace

template <typename Scalar>
void project(const Rows<Scalar>& rows, const Scalar* B, Index width, Scalar* out) {
  if (rows.count() == 0 || width == 0) return;
  if (!rows.is_sparse()) {
    const BlasTurn turn;
    gemm(CblasNoTrans, rows.count(), width, rows.dim(), rows.row(0), rows.stride(), B, width, Scalar(0), out, width);
    return;
  }
  std::fill(out, out + rows.count() * width, Scalar(0));
  for (Index i = 0; i < rows.count(); ++i) {
    fetch_soon(rows, i, B, width);
    Scalar* projected = out + i * width;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const Scalar* feature = B + j * width;
      for (Index c = 0; c < width; ++c) projected[c] += x * feature[c];
    });
  }
}

template <typename Scalar>
void add_back_projection(const Rows<Scalar>& rows, const Scalar* C, Index width, Scalar* out) {
  if (rows.count() == 0 || width == 0) return;
  if (!rows.is_sparse()) {
    const BlasTurn turn;
    gemm(CblasTrans, rows.dim(), width, rows.count(), rows.row(0), rows.stride(), C, width, Scalar(1), out, width);
    return;
  }
  for (Index i = 0; i < rows.count(); ++i) {
    fetch_soon(rows, i, out, width);
    const Scalar* projected = C + i * width;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      Scalar* feature = out + j * width;
      for (Index c = 0; c < width; ++c) feature[c] += x * projected[c];
    });
  }
}

template <typename Scalar>
void project_squares(const Rows<Scalar>& rows, const Scalar* q, Scalar* out) {
  for (Index i = 0; i < rows.count(); ++i) {
    if (!rows.is_sparse()) {
      out[i] = dot_squares(q, rows.row(i), rows.dim());
      continue;
    }
    Scalar sum = 0;
    rows.for_each_entry(i, [&](Index j, Scalar x) { sum += q[j] * x * x; });
    out[i] = sum;
  }
}

template <typename Scalar>
void add_back_projected_squares(const Rows<Scalar>& rows, const Scalar* c, Index stride, Scalar* out) {
  for (Index i = 0; i < rows.count(); ++i) {
    const Scalar weight = c[i * stride];
    rows.for_each_entry(i, [&](Index j, Scalar x) { out[j] += weight * x * x; });
  }
}

template <typename Scalar>
Index cached_rows(const Rows<Scalar>& rows) {
  constexpr Index cache_bytes = Index{256} << 10;
  constexpr Index fewest = 16;
  if (rows.is_sparse() || rows.dim() == 0) return 1024;
  return std::max(fewest, cache_bytes / (rows.dim() * static_cast<Index>(sizeof(Scalar))));
}

template void project(const Rows<float>&, const float*, Index, float*);
template void project(const Rows<double>&, const double*, Index, double*);
template void add_back_projection(const Rows<float>&, const float*, Index, float*);
template void add_back_projection(const Rows<double>&, const double*, Index, double*);
template void project_squares(const Rows<float>&, const float*, float*);
template void project_squares(const Rows<double>&, const double*, double*);
template void add_back_projected_squares(const Rows<float>&, const float*, Index, float*);
template void add_back_projected_squares(const Rows<double>&, const double*, Index, double*);
template Index cached_rows(const Rows<float>&);
template Index cached_rows(const Rows<double>&);

}  // namespace dyad
