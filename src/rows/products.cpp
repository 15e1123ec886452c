#include "rows/products.h"

#include <algorithm>
#include <mutex>

#include <cblas.h>
#include <Eigen/Core>

#include "base/lanes.h"

namespace dyad {
namespace {

/// Threads are ours (base/workers.h): a product runs on the thread that asked for it. Only OpenBLAS's pthread build
/// locks the buffers that concurrent products share; Debian's serial build silently mixes them up, so whatever is not
/// the pthread build takes turns.
class BlasTurn {
 public:
  BlasTurn() {
    static const bool takes_turns = [] {
      openblas_set_num_threads(1);
      return openblas_get_parallel() != OPENBLAS_THREAD;
    }();
    if (takes_turns) lock_ = std::unique_lock(mutex());
  }

 private:
  static std::mutex& mutex() {
    static std::mutex the_mutex;
    return the_mutex;
  }
  std::unique_lock<std::mutex> lock_;
};

blasint blas(Index n) { return static_cast<blasint>(n); }

void gemm(CBLAS_TRANSPOSE transpose, Index m, Index n, Index k, const float* A, Index lda, const float* B, float beta,
          float* C) {
  cblas_sgemm(CblasRowMajor, transpose, CblasNoTrans, blas(m), blas(n), blas(k), 1, A, blas(lda), B, blas(n), beta, C,
              blas(n));
}

void gemm(CBLAS_TRANSPOSE transpose, Index m, Index n, Index k, const double* A, Index lda, const double* B,
          double beta, double* C) {
  cblas_dgemm(CblasRowMajor, transpose, CblasNoTrans, blas(m), blas(n), blas(k), 1, A, blas(lda), B, blas(n), beta, C,
              blas(n));
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
    gemm(CblasNoTrans, rows.count(), width, rows.dim(), rows.row(0), rows.stride(), B, 0, out);
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
    gemm(CblasTrans, rows.dim(), width, rows.count(), rows.row(0), rows.stride(), C, 1, out);
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
