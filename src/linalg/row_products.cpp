#include "linalg/row_products.h"

#include <algorithm>
#include <mutex>
#include <type_traits>
#include <vector>

#include <cblas.h>
#include <Eigen/Core>

#include "linalg/simd.h"

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
/// times GEMM_MULTITHREAD_THRESHOLD). Threads belong to base/thread_pool.h, and the number of OpenBLAS's threads
/// belongs to the host process, so that larger products are split. With 1,024 features the moment sums and products of
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

template <typename Number, typename Scalar>
Number dot_squares(const Number* q, const Scalar* x, Index dim) {
  const Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>> row(x, dim);
  return (Eigen::Map<const Eigen::Array<Number, Eigen::Dynamic, 1>>(q, dim) * row.template cast<Number>().square())
      .sum();
}

/// Calls visit(first, block) with dense rows as numbers of the type of the product.
template <typename Number, typename Scalar, typename Visit>
void for_each_block(const Rows<Scalar>& rows, Visit&& visit) {
  if constexpr (std::is_same_v<Scalar, Number>) {
    visit(Index{0}, rows);
  } else {
    thread_local std::vector<Number> converted;  // allocations of this size would be returned to the system each time
    const Index most = std::min(max_converted_rows, cached_rows(rows, sizeof(Number)));
    for (Index first = 0; first < rows.count(); first += most) {
      const Index count = std::min(most, rows.count() - first);
      converted.resize(static_cast<std::size_t>(count * rows.dim()));
      for (Index i = 0; i < count; ++i)
        std::copy_n(rows.row(first + i), rows.dim(), converted.begin() + i * rows.dim());
      visit(first, Rows<Number>::dense(converted, rows.dim()));
    }
  }
}

/// Prefetches the numbers of the features of a row behind row i.
template <typename Scalar, typename Number>
void fetch_soon(const Rows<Scalar>& rows, Index i, const Number* numbers, Index width) {
  constexpr Index ahead = 8;
  if (i + ahead < rows.count())
    rows.for_each_entry(i + ahead, [&](Index j, Scalar) { fetch_numbers(numbers + j * width, width); });
}

}  // namespace

template <typename Scalar, typename Number>
void project(const Rows<Scalar>& rows, const Number* B, Index width, Number* out) {
  if (rows.count() == 0 || width == 0) return;
  if (!rows.is_sparse()) {
    for_each_block<Number>(rows, [&](Index first, const Rows<Number>& block) {
      const BlasTurn turn;
      gemm(CblasNoTrans, block.count(), width, block.dim(), block.row(0), block.stride(), B, width, Number(0),
           out + first * width, width);
    });
    return;
  }
  std::fill(out, out + rows.count() * width, Number(0));
  for (Index i = 0; i < rows.count(); ++i) {
    fetch_soon(rows, i, B, width);
    Number* projected = out + i * width;
    rows.for_each_entry(i, [&](Index j, Number x) {
      const Number* feature = B + j * width;
      for (Index c = 0; c < width; ++c) projected[c] += x * feature[c];
    });
  }
}

template <typename Scalar, typename Number>
void add_back_projection(const Rows<Scalar>& rows, const Number* C, Index width, Number* out) {
  if (rows.count() == 0 || width == 0) return;
  if (!rows.is_sparse()) {
    for_each_block<Number>(rows, [&](Index first, const Rows<Number>& block) {
      const BlasTurn turn;
      gemm(CblasTrans, block.dim(), width, block.count(), block.row(0), block.stride(), C + first * width, width,
           Number(1), out, width);
    });
    return;
  }
  for (Index i = 0; i < rows.count(); ++i) {
    fetch_soon(rows, i, out, width);
    const Number* projected = C + i * width;
    rows.for_each_entry(i, [&](Index j, Number x) {
      Number* feature = out + j * width;
      for (Index c = 0; c < width; ++c) feature[c] += x * projected[c];
    });
  }
}

template <typename Scalar, typename Number>
void project_squares(const Rows<Scalar>& rows, const Number* q, Number* out) {
  for (Index i = 0; i < rows.count(); ++i) {
    if (!rows.is_sparse()) {
      out[i] = dot_squares(q, rows.row(i), rows.dim());
      continue;
    }
    Number sum = 0;
    rows.for_each_entry(i, [&](Index j, Number x) { sum += q[j] * x * x; });
    out[i] = sum;
  }
}

template <typename Scalar, typename Number>
void add_back_projected_squares(const Rows<Scalar>& rows, const Number* c, Index stride, Number* out) {
  for (Index i = 0; i < rows.count(); ++i) {
    const Number weight = c[i * stride];
    rows.for_each_entry(i, [&](Index j, Number x) { out[j] += weight * x * x; });
  }
}

template <typename Scalar>
Index cached_rows(const Rows<Scalar>& rows, std::size_t number_bytes) {
  constexpr Index cache_bytes = Index{256} << 10;
  constexpr Index fewest = 16;
  if (rows.is_sparse() || rows.dim() == 0) return 1024;
  return std::max(fewest, cache_bytes / (rows.dim() * static_cast<Index>(number_bytes)));
}

template void project(const Rows<float>&, const float*, Index, float*);
template void add_back_projection(const Rows<float>&, const float*, Index, float*);
template void project_squares(const Rows<float>&, const float*, float*);
template void add_back_projected_squares(const Rows<float>&, const float*, Index, float*);
template void project(const Rows<float>&, const double*, Index, double*);
template void add_back_projection(const Rows<float>&, const double*, Index, double*);
template void project_squares(const Rows<float>&, const double*, double*);
template void add_back_projected_squares(const Rows<float>&, const double*, Index, double*);
template void project(const Rows<double>&, const double*, Index, double*);
template void add_back_projection(const Rows<double>&, const double*, Index, double*);
template void project_squares(const Rows<double>&, const double*, double*);
template void add_back_projected_squares(const Rows<double>&, const double*, Index, double*);
template Index cached_rows(const Rows<float>&, std::size_t);
template Index cached_rows(const Rows<double>&, std::size_t);

}  // namespace dyad
