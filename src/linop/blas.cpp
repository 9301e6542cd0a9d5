// SPDX-License-Identifier: Apache-2.0
#include "linop/blas.h"

#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "linop/instantiate.h"
#include "shoal/base/error.h"

namespace shoal::linop::blas {
namespace {

// OpenBLAS, loaded when this library is: it chooses its kernels while it is being loaded, from the
// environment or from a list of processors that newer ones are not in. OpenBLAS 0.3.21 takes an Intel
// processor that it does not know for one without AVX, and is six times slower there; its kernels for the
// first with AVX-512 are right for all of them.
class Library {
 public:
  Library() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512bw"))
      setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
#endif
    handle_ = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
      const char* const reason = dlerror();
      trouble_ = reason ? reason : "libopenblas.so.0 is not there";
      return;
    }
    find(sgemm, "cblas_sgemm");
    find(dgemm, "cblas_dgemm");
    find(cgemm, "cblas_cgemm");
    find(zgemm, "cblas_zgemm");
    find(sgemv, "cblas_sgemv");
    find(dgemv, "cblas_dgemv");
    find(cgemv, "cblas_cgemv");
    find(zgemv, "cblas_zgemv");
    // Ranks share the cores among themselves: a BLAS that starts a thread for each core in every rank is
    // slower.
    decltype(&openblas_set_num_threads) set_threads = nullptr;
    find(set_threads, "openblas_set_num_threads");
    if (set_threads && !std::getenv("OPENBLAS_NUM_THREADS") && !std::getenv("OMP_NUM_THREADS"))
      set_threads(1);
  }

  void require() const {
    if (!trouble_.empty())
      fail(ErrorCode::unsupported, fmt::format("no BLAS: {} (install libopenblas0)", trouble_));
  }

  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
  decltype(&cblas_cgemm) cgemm = nullptr;
  decltype(&cblas_zgemm) zgemm = nullptr;
  decltype(&cblas_sgemv) sgemv = nullptr;
  decltype(&cblas_dgemv) dgemv = nullptr;
  decltype(&cblas_cgemv) cgemv = nullptr;
  decltype(&cblas_zgemv) zgemv = nullptr;

 private:
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (!function && trouble_.empty()) trouble_ = fmt::format("libopenblas.so.0 has no {}", name);
  }
  void* handle_ = nullptr;  // for as long as the process lives
  std::string trouble_;
};

const Library library;  // before main, and so before there are threads that look at the environment

blasint length(std::int64_t n) {
  if (n < 0 || n > std::numeric_limits<blasint>::max())
    fail(ErrorCode::invalid_argument,
         fmt::format("a matrix extent of {} is more than this BLAS can take", n));
  return static_cast<blasint>(n);
}

CBLAS_TRANSPOSE code(Form form) {
  return form == Form::plain ? CblasNoTrans : form == Form::transposed ? CblasTrans : CblasConjTrans;
}

}  // namespace

template <class T>
void gemm(Form a_form, Form b_form, std::int64_t m_in, std::int64_t n_in, std::int64_t k_in, T alpha,
          const T* a, std::int64_t lda_in, const T* b, std::int64_t ldb_in, T beta, T* c,
          std::int64_t ldc_in) {
  library.require();
  const blasint m = length(m_in), n = length(n_in), k = length(k_in);
  if (m == 0 || n == 0) return;
  const blasint lda = length(lda_in), ldb = length(ldb_in), ldc = length(ldc_in);
  const auto ta = code(a_form), tb = code(b_form);
  if constexpr (std::is_same_v<T, float>)
    library.sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else if constexpr (std::is_same_v<T, double>)
    library.dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    library.cgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  else
    library.zgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

template <class T>
void gemv(Form form, std::int64_t rows_in, std::int64_t cols_in, T alpha, const T* a, std::int64_t lda_in,
          const T* x, T beta, T* y) {
  library.require();
  const blasint rows = length(rows_in), cols = length(cols_in), lda = length(lda_in);
  const blasint outputs = form == Form::plain ? rows : cols;
  if (outputs == 0) return;
  if (rows == 0 || cols == 0) {  // a sum over nothing; this BLAS returns without touching y
    for (blasint i = 0; i < outputs; ++i) y[i] = beta == T{} ? T{} : beta * y[i];
    return;
  }
  const auto transposition = code(form);
  if constexpr (std::is_same_v<T, float>)
    library.sgemv(CblasRowMajor, transposition, rows, cols, alpha, a, lda, x, 1, beta, y, 1);
  else if constexpr (std::is_same_v<T, double>)
    library.dgemv(CblasRowMajor, transposition, rows, cols, alpha, a, lda, x, 1, beta, y, 1);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    library.cgemv(CblasRowMajor, transposition, rows, cols, &alpha, a, lda, x, 1, &beta, y, 1);
  else
    library.zgemv(CblasRowMajor, transposition, rows, cols, &alpha, a, lda, x, 1, &beta, y, 1);
}

#define SHOAL_INSTANTIATE(T)                                                                             \
  template void gemm<T>(Form, Form, std::int64_t, std::int64_t, std::int64_t, T, const T*, std::int64_t, \
                        const T*, std::int64_t, T, T*, std::int64_t);                                    \
  template void gemv<T>(Form, std::int64_t, std::int64_t, T, const T*, std::int64_t, const T*, T, T*);
SHOAL_LINOP_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::linop::blas
