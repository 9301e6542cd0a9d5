// SPDX-License-Identifier: Apache-2.0
// ScaLAPACK's products of square matrices, pdgemm and pzgemm, on all grids of the ranks. Of the block sizes
// 64, 128 and 256 the fastest counts.
#include <complex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "timing.h"

// The library comes without a header.
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* member, const int* source, const int* members);
void descinit_(int* descriptor, const int* m, const int* n, const int* mb, const int* nb,
               const int* row_source, const int* column_source, const int* context, const int* leading,
               int* info);
#define SHOAL_PGEMM(NAME, T)                                                                         \
  void NAME(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,      \
            const T* alpha, const T* a, const int* ia, const int* ja, const int* desc_a, const T* b, \
            const int* ib, const int* jb, const int* desc_b, const T* beta, T* c, const int* ic,     \
            const int* jc, const int* desc_c)
SHOAL_PGEMM(pdgemm_, double);
SHOAL_PGEMM(pzgemm_, std::complex<double>);
#undef SHOAL_PGEMM
}

namespace {

using namespace shoal::bench;
using Complex = std::complex<double>;

void pgemm(const char* trans, int n, const double* a, const double* b, double* c, const int* desc) {
  const double alpha = 1, beta = 0;
  const int one = 1;
  pdgemm_(trans, "N", &n, &n, &n, &alpha, a, &one, &one, desc, b, &one, &one, desc, &beta, c, &one, &one,
          desc);
}
void pgemm(const char* trans, int n, const Complex* a, const Complex* b, Complex* c, const int* desc) {
  const Complex alpha = 1, beta = 0;
  const int one = 1;
  pzgemm_(trans, "N", &n, &n, &n, &alpha, a, &one, &one, desc, b, &one, &one, desc, &beta, c, &one, &one,
          desc);
}

template <class T>
Quartiles with_block(const Rival& rival, int n, int rows, int columns, int block, bool adjoint) {
  int context = 0, row = 0, column = 0, info = 0;
  const int zero = 0;
  Cblacs_get(-1, 0, &context);
  Cblacs_gridinit(&context, "Row", rows, columns);
  Cblacs_gridinfo(context, &rows, &columns, &row, &column);
  const int local_rows = numroc_(&n, &block, &row, &zero, &rows);
  const int local_columns = numroc_(&n, &block, &column, &zero, &columns);
  int desc[9];
  descinit_(desc, &n, &n, &block, &block, &zero, &zero, &context, &local_rows, &info);
  rival.require(info == 0, "the descriptor");
  const auto size = static_cast<std::size_t>(local_rows) * static_cast<std::size_t>(local_columns);
  const std::vector<T> a(size, T(1)), b(size, T(2));
  std::vector<T> c(size);
  const Quartiles time =
      rival.time([&] { pgemm(adjoint ? "C" : "N", n, a.data(), b.data(), c.data(), desc); });
  rival.require(c.empty() || (c.front() == T(2.0 * n) && c.back() == T(2.0 * n)), "the product");
  Cblacs_gridexit(context);
  return time;
}

template <class T>
void products(const Rival& rival, const std::string& type, int n, double flops_each) {
  for (int rows = 1; rows <= rival.ranks(); ++rows) {
    if (rival.ranks() % rows != 0) continue;
    const int columns = rival.ranks() / rows;
    const std::string name = fmt::format("SUMMA {} {}, grid {}x{}", n, type, rows, columns);
    if (!rival.wanted(name)) continue;
    for (const bool adjoint : {false, true}) {
      Quartiles best;
      int best_block = 0;
      for (const int block : {64, 128, 256}) {
        const Quartiles time = with_block<T>(rival, n, rows, columns, block, adjoint);
        if (best_block != 0 && time.median_ms >= best.median_ms) continue;
        best = time;
        best_block = block;
      }
      rival.report({.name = name + (adjoint ? ", adjoint" : ", forward"),
                    .time = best,
                    .flops = flops_each * n * n * n,
                    .more = {{"block", best_block}}});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Rival rival(argc, argv, "ScaLAPACK");
  products<double>(rival, "double", 2048, 2);
  products<Complex>(rival, "complex", 1024, 8);
  products<Complex>(rival, "complex", 256, 8);
  return 0;
}
