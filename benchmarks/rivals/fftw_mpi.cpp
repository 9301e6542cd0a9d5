// SPDX-License-Identifier: Apache-2.0
// FFTW's own transforms over MPI, with plans that it measured (FFTW_MEASURE). A case is one forward and one
// backward. Planning takes long, so the file that RIVAL_FFTW_WISDOM names, if any, keeps what was learnt.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <mpi.h>

#include <fftw3-mpi.h>

#include "timing.h"

namespace {

using namespace shoal::bench;

struct Free {
  void operator()(void* memory) const { fftw_free(memory); }
};
using Memory = std::unique_ptr<fftw_complex[], Free>;

struct Plan {
  fftw_plan plan;
  explicit Plan(fftw_plan made) : plan(made) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() { fftw_destroy_plan(plan); }
};

constexpr unsigned planning = FFTW_MEASURE;

fftw_plan forward_plan(bool real, std::ptrdiff_t n, fftw_complex* x, fftw_complex* y, unsigned flags) {
  flags |= planning;
  return real ? fftw_mpi_plan_dft_r2c_3d(n, n, n, *x, y, MPI_COMM_WORLD, flags)
              : fftw_mpi_plan_dft_3d(n, n, n, x, y, MPI_COMM_WORLD, FFTW_FORWARD, flags);
}
fftw_plan backward_plan(bool real, std::ptrdiff_t n, fftw_complex* y, fftw_complex* x, unsigned flags) {
  flags |= planning;
  return real ? fftw_mpi_plan_dft_c2r_3d(n, n, n, y, *x, MPI_COMM_WORLD, flags)
              : fftw_mpi_plan_dft_3d(n, n, n, y, x, MPI_COMM_WORLD, FFTW_BACKWARD, flags);
}

void transform(const Rival& rival, std::ptrdiff_t n, bool real, bool transposed) {
  const std::string name =
      fmt::format("FFT{} {} {}", transposed ? " transposed" : "", n, real ? "real" : "complex");
  if (!rival.wanted(name)) return;
  std::ptrdiff_t rows, row_begin, columns, column_begin;
  const std::ptrdiff_t size = fftw_mpi_local_size_3d_transposed(n, n, real ? n / 2 + 1 : n, MPI_COMM_WORLD,
                                                                &rows, &row_begin, &columns, &column_begin);
  const auto memory = [&] { return Memory(fftw_alloc_complex(static_cast<std::size_t>(size))); };
  const Memory x = memory(), y = memory(), back = memory();
  const Plan forward(forward_plan(real, n, x.get(), y.get(), transposed ? FFTW_MPI_TRANSPOSED_OUT : 0));
  const Plan backward(backward_plan(real, n, y.get(), back.get(), transposed ? FFTW_MPI_TRANSPOSED_IN : 0));
  for (std::ptrdiff_t i = 0; i < size; ++i) x[i][0] = x[i][1] = static_cast<double>(i % 7) - 3;
  const Quartiles time = rival.time([&] {
    fftw_execute(forward.plan);
    fftw_execute(backward.plan);
  });
  const auto elements = static_cast<double>(n * n * n);
  rival.require(rows == 0 || std::abs(back[0][0] - elements * x[0][0]) < 1e-9 * elements, name);
  const double flops = 2 * (real ? 2.5 : 5) * elements * std::log2(elements);
  rival.report({.name = name, .time = time, .flops = flops});
}

}  // namespace

int main(int argc, char** argv) {
  const Rival rival(argc, argv, fmt::format("{} over MPI", fftw_version));
  fftw_mpi_init();
  const char* const wisdom = std::getenv("RIVAL_FFTW_WISDOM");
  if (wisdom && rival.rank() == 0) fftw_import_wisdom_from_filename(wisdom);
  fftw_mpi_broadcast_wisdom(MPI_COMM_WORLD);
  for (const bool transposed : {false, true})
    for (const std::ptrdiff_t n : {200, 256})
      for (const bool real : {false, true}) transform(rival, n, real, transposed);
  fftw_mpi_gather_wisdom(MPI_COMM_WORLD);
  if (wisdom && rival.rank() == 0) fftw_export_wisdom_to_filename(wisdom);
  fftw_mpi_cleanup();
  return 0;
}
