#include "linalg/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include <cblas.h>

// Functions of OpenBLAS builds that contain the kernels of several processors; null in other builds.
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_init();
__attribute__((weak)) void gotoblas_dynamic_quit();
}

namespace dyad {
namespace {

/// Serializes calls of OpenBLAS unless it is built with pthreads. Concurrent calls share buffers, and only the pthreads
/// build locks them. Without this lock, concurrent calls of Debian's serial build return wrong products.
class BlasLock {
 public:
  BlasLock() {
    static const bool is_needed = openblas_get_parallel() != OPENBLAS_THREAD;
    if (is_needed) lock_ = std::unique_lock(mutex());
  }

 private:
  static std::mutex& mutex() {
    static std::mutex process_mutex;
    return process_mutex;
  }
  std::unique_lock<std::mutex> lock_;
};

/// Selects AVX kernels if OpenBLAS does not recognize the processor. OpenBLAS then uses its SSE3 kernels ("Prescott"),
/// although the processor may support AVX2: OpenBLAS 0.3.21 knows no processor released after 2021. On such a processor
/// a product of 1,500 x 1,500 doubles runs at 9.5 Gflop/s with the SSE3 kernels, 36 with those of Haswell and 50 with
/// those of Skylake-X. The environment variable OPENBLAS_CORETYPE takes precedence. Runs before main(), because no
/// other thread may use OpenBLAS at the same time.
bool select_blas_kernels() {
#if defined(__x86_64__) && defined(__GNUC__)
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return false;
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr || std::string_view(openblas_get_corename()) != "Prescott")
    return false;
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (!has_avx2) return false;
  setenv("OPENBLAS_CORETYPE", has_avx512 ? "SkylakeX" : "Haswell", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
  return true;
#else
  return false;
#endif
}
[[maybe_unused]] const bool kernels_are_selected = select_blas_kernels();

/// OpenBLAS runs a product of at most 2^18 multiply-adds on the calling thread (interface/gemm.c: SMP_THRESHOLD_MIN
/// times GEMM_MULTITHREAD_THRESHOLD). Larger products are split into calls of at most this size, so that only
/// ThreadPool runs products in parallel and the number of OpenBLAS's threads, a setting of the host process, is not
/// changed. Measured run time of the split calls without packing, divided by that of one call with
/// openblas_set_num_threads(1), for the moment sums and the products of Gauss-Newton with 1,024 features: 1.08 to 1.10
/// at rank 8, 0.78 to 1.05 at rank 16 (`make bench-compare REV=895cd28 FILTER=1024`, minimum of 5 runs).
constexpr double max_multiply_adds = 1 << 18;

blasint to_blasint(Index n) { return static_cast<blasint>(n); }

CBLAS_TRANSPOSE to_cblas(Operation operation) { return operation == Operation::transpose ? CblasTrans : CblasNoTrans; }

void call_gemm(Index m, Index n, Index k, float alpha, Operand<float> A, Operand<float> B, float beta, float* C,
               Index stride_C) {
  cblas_sgemm(CblasRowMajor, to_cblas(A.operation), to_cblas(B.operation), to_blasint(m), to_blasint(n), to_blasint(k),
              alpha, A.numbers, to_blasint(A.stride), B.numbers, to_blasint(B.stride), beta, C, to_blasint(stride_C));
}

void call_gemm(Index m, Index n, Index k, double alpha, Operand<double> A, Operand<double> B, double beta, double* C,
               Index stride_C) {
  cblas_dgemm(CblasRowMajor, to_cblas(A.operation), to_cblas(B.operation), to_blasint(m), to_blasint(n), to_blasint(k),
              alpha, A.numbers, to_blasint(A.stride), B.numbers, to_blasint(B.stride), beta, C, to_blasint(stride_C));
}

/// op(A) without its first `rows` rows and `columns` columns.
template <typename Number>
Operand<Number> skip(Operand<Number> A, Index rows, Index columns) {
  A.numbers += A.operation == Operation::transpose ? columns * A.stride + rows : rows * A.stride + columns;
  return A;
}

/// Halves a dimension until each product has at most `max_multiply_adds`. Splits m, if it exceeds `tile_size`, for
/// op(A) = A or m >= n. Otherwise splits the larger of n and k. After a split of k, the second product is added to C.
template <typename Number>
void split_gemm(Index m, Index n, Index k, Number alpha, Operand<Number> A, Operand<Number> B, Number beta, Number* C,
                Index stride_C) {
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <= max_multiply_adds)
    return call_gemm(m, n, k, alpha, A, B, beta, C, stride_C);
  constexpr Index tile_size = 16;  // multiple of the rows and columns of the register tiles of OpenBLAS's kernels
  // half of a dimension, rounded up to a multiple of tile_size
  const auto half = [](Index size) { return (size / 2 + tile_size - 1) / tile_size * tile_size; };
  if (m > tile_size && (m >= n || A.operation == Operation::identity)) {
    const Index first = half(m);
    split_gemm(first, n, k, alpha, A, B, beta, C, stride_C);
    split_gemm(m - first, n, k, alpha, skip(A, first, 0), B, beta, C + first * stride_C, stride_C);
  } else if (n >= k) {
    const Index first = half(n);
    split_gemm(m, first, k, alpha, A, B, beta, C, stride_C);
    split_gemm(m, n - first, k, alpha, A, skip(B, 0, first), beta, C + first, stride_C);
  } else {
    const Index first = half(k);
    split_gemm(m, n, first, alpha, A, B, beta, C, stride_C);
    split_gemm(m, n, k - first, alpha, skip(A, 0, first), skip(B, first, 0), Number(1), C, stride_C);
  }
}

/// Tiles of packed products: 96 x 48 x 56 = 258,048 multiply-adds, just below `max_multiply_adds`. Rate of OpenBLAS on
/// contiguous tiles of doubles (Skylake-X kernels): 71 Gflop/s, beside 64 for 64 x 64 x 64 and 73 for one call with
/// 1,500 x 1,500 matrices; tiles with rows 1,500 numbers apart reach 30.
constexpr Index tile_rows = 96;
constexpr Index tile_columns = 48;
constexpr Index tile_depth = 56;
/// Tiles of A that are packed together: 768 x 448 doubles, 2.75 MB, which fits the second or third cache level.
constexpr Index packed_row_tiles = 8;
constexpr Index packed_depth_tiles = 8;
/// Smallest dimension of packed products. A packed number is used at least this often, so that copying it takes a small
/// part of the run time.
constexpr Index min_packed_size = 32;

/// Copies rows [row, row + rows) and columns [column, column + columns) of op(A) to a contiguous row-major tile.
template <typename Number>
void pack_tile(Operand<Number> A, Index row, Index rows, Index column, Index columns, Number* tile) {
  if (A.operation == Operation::identity) {
    for (Index i = 0; i < rows; ++i)
      std::copy_n(A.numbers + (row + i) * A.stride + column, columns, tile + i * columns);
    return;
  }
  // Transposes strips of 8 columns, whose cache lines stay in the first cache level.
  constexpr Index strip = 8;
  for (Index first = 0; first < rows; first += strip) {
    const Index last = std::min(rows, first + strip);
    for (Index j = 0; j < columns; ++j) {
      const Number* source = A.numbers + (column + j) * A.stride + row;
      for (Index i = first; i < last; ++i) tile[i * columns + j] = source[i];
    }
  }
}

/// Packs the operands into contiguous tiles, so that each call of OpenBLAS reads contiguous memory. Sums of the tiles
/// of C are accumulated in a contiguous tile.
template <typename Number>
void packed_gemm(Index m, Index n, Index k, Number alpha, Operand<Number> A, Operand<Number> B, Number beta, Number* C,
                 Index stride_C) {
  // The buffers are kept for the next call of the thread.
  thread_local std::vector<Number> packed_A;
  thread_local std::vector<Number> packed_B;
  thread_local std::vector<Number> tile_C(tile_rows * tile_columns);
  constexpr Index block_rows = packed_row_tiles * tile_rows;
  constexpr Index block_depth = packed_depth_tiles * tile_depth;
  packed_A.resize(static_cast<std::size_t>(block_rows * block_depth));
  packed_B.resize(static_cast<std::size_t>(tile_columns * block_depth));
  for (Index l0 = 0; l0 < k; l0 += block_depth) {
    const Index depth = std::min(block_depth, k - l0);
    for (Index i0 = 0; i0 < m; i0 += block_rows) {
      const Index rows = std::min(block_rows, m - i0);
      for (Index i = 0; i < rows; i += tile_rows)
        for (Index l = 0; l < depth; l += tile_depth)
          pack_tile(A, i0 + i, std::min(tile_rows, rows - i), l0 + l, std::min(tile_depth, depth - l),
                    packed_A.data() + i * block_depth + l * tile_rows);
      for (Index j = 0; j < n; j += tile_columns) {
        const Index columns = std::min(tile_columns, n - j);
        for (Index l = 0; l < depth; l += tile_depth)
          pack_tile(B, l0 + l, std::min(tile_depth, depth - l), j, columns, packed_B.data() + l * tile_columns);
        for (Index i = 0; i < rows; i += tile_rows) {
          const Index height = std::min(tile_rows, rows - i);
          for (Index l = 0; l < depth; l += tile_depth) {
            const Index length = std::min(tile_depth, depth - l);
            call_gemm(height, columns, length, alpha, {packed_A.data() + i * block_depth + l * tile_rows, length},
                      {packed_B.data() + l * tile_columns, columns}, Number(l > 0), tile_C.data(), columns);
          }
          const Number factor = l0 > 0 ? Number(1) : beta;
          for (Index r = 0; r < height; ++r) {
            const Number* source = tile_C.data() + r * columns;
            Number* target = C + (i0 + i + r) * stride_C + j;
            if (factor == 0)
              std::copy_n(source, columns, target);
            else
              for (Index c = 0; c < columns; ++c) target[c] = factor * target[c] + source[c];
          }
        }
      }
    }
  }
}

}  // namespace

template <typename Number>
void gemm(Index m, Index n, Index k, Number alpha, Operand<Number> A, Operand<Number> B, Number beta, Number* C,
          Index stride_C) {
  if (m == 0 || n == 0) return;
  const BlasLock lock;
  const bool is_large = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > max_multiply_adds;
  if (is_large && std::min({m, n, k}) >= min_packed_size) return packed_gemm(m, n, k, alpha, A, B, beta, C, stride_C);
  split_gemm(m, n, k, alpha, A, B, beta, C, stride_C);
}

template void gemm(Index, Index, Index, float, Operand<float>, Operand<float>, float, float*, Index);
template void gemm(Index, Index, Index, double, Operand<double>, Operand<double>, double, double*, Index);

}  // namespace dyad
