// SPDX-License-Identifier: Apache-2.0
// PETSc's conjugate gradients with the 7-point Laplacian on 300 x 200 x 200, without a preconditioner: time
// of an iteration. Matrix-free (a MatShell over a DMDA, ghost planes exchanged in each product) and with the
// assembled matrix (AIJ).
#include <cmath>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <petscdmda.h>
#include <petscksp.h>

#include "timing.h"

namespace {

using namespace shoal::bench;

constexpr PetscInt planes = 300, rows = 200, columns = 200;
constexpr int iterations = 5;

// What the product needs besides the vectors. Ghosts beyond the domain are zero and stay so.
struct Grid {
  DM dm = nullptr;
  Vec ghosted = nullptr;
};

void require(PetscErrorCode code) { CHKERRABORT(PETSC_COMM_WORLD, code); }

Grid make_grid(int ranks) {
  Grid grid;
  const DMBoundaryType edge = DM_BOUNDARY_GHOSTED;
  require(DMDACreate3d(PETSC_COMM_WORLD, edge, edge, edge, DMDA_STENCIL_STAR, columns, rows, planes, 1, 1,
                       ranks, 1, 1, nullptr, nullptr, nullptr, &grid.dm));
  require(DMSetUp(grid.dm));
  require(DMCreateLocalVector(grid.dm, &grid.ghosted));
  require(VecSet(grid.ghosted, 0));
  return grid;
}

// y = A x with A = 6 x - the sum of the six neighbours.
PetscErrorCode multiply(Mat matrix, Vec x, Vec y) {
  Grid* grid = nullptr;
  require(MatShellGetContext(matrix, &grid));
  require(DMGlobalToLocalBegin(grid->dm, x, INSERT_VALUES, grid->ghosted));
  require(DMGlobalToLocalEnd(grid->dm, x, INSERT_VALUES, grid->ghosted));
  PetscInt k0, j0, i0, nk, nj, ni;
  require(DMDAGetCorners(grid->dm, &k0, &j0, &i0, &nk, &nj, &ni));
  const PetscScalar* ghosted = nullptr;
  PetscScalar* output = nullptr;
  require(VecGetArrayRead(grid->ghosted, &ghosted));
  require(VecGetArrayWrite(y, &output));
  const PetscInt line = nk + 2, plane = line * (nj + 2);
  for (PetscInt i = 0; i < ni; ++i)
    for (PetscInt j = 0; j < nj; ++j) {
      const PetscScalar* const in = ghosted + (i + 1) * plane + (j + 1) * line + 1;
      PetscScalar* const out = output + (i * nj + j) * nk;
      for (PetscInt k = 0; k < nk; ++k)
        out[k] =
            6 * in[k] - in[k - 1] - in[k + 1] - in[k - line] - in[k + line] - in[k - plane] - in[k + plane];
    }
  require(VecRestoreArrayWrite(y, &output));
  require(VecRestoreArrayRead(grid->ghosted, &ghosted));
  return 0;
}

Mat matrix_free(Grid& grid, PetscInt local) {
  Mat matrix = nullptr;
  require(MatCreateShell(PETSC_COMM_WORLD, local, local, PETSC_DETERMINE, PETSC_DETERMINE, &grid, &matrix));
  // PETSc's interface takes any function as void(*)(void).
  require(MatShellSetOperation(matrix, MATOP_MULT, reinterpret_cast<void (*)()>(&multiply)));
  return matrix;
}

Mat assembled(const Grid& grid) {
  Mat matrix = nullptr;
  require(DMSetMatType(grid.dm, MATAIJ));
  require(DMCreateMatrix(grid.dm, &matrix));
  PetscInt k0, j0, i0, nk, nj, ni;
  require(DMDAGetCorners(grid.dm, &k0, &j0, &i0, &nk, &nj, &ni));
  for (PetscInt i = i0; i < i0 + ni; ++i)
    for (PetscInt j = j0; j < j0 + nj; ++j)
      for (PetscInt k = k0; k < k0 + nk; ++k) {
        MatStencil row{i, j, k, 0}, column[7];
        PetscScalar value[7];
        PetscInt count = 0;
        const auto add = [&](PetscInt plane, PetscInt line, PetscInt at, PetscScalar what) {
          if (plane < 0 || plane >= planes || line < 0 || line >= rows || at < 0 || at >= columns) return;
          column[count] = {plane, line, at, 0};
          value[count++] = what;
        };
        add(i, j, k, 6);
        for (const PetscInt step : {-1, 1}) {
          add(i + step, j, k, -1);
          add(i, j + step, k, -1);
          add(i, j, k + step, -1);
        }
        require(MatSetValuesStencil(matrix, 1, &row, count, column, value, INSERT_VALUES));
      }
  require(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
  require(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));
  return matrix;
}

KSP conjugate_gradients(Mat matrix) {
  KSP solver = nullptr;
  PC preconditioner = nullptr;
  require(KSPCreate(PETSC_COMM_WORLD, &solver));
  require(KSPSetOperators(solver, matrix, matrix));
  require(KSPSetType(solver, KSPCG));
  require(KSPGetPC(solver, &preconditioner));
  require(PCSetType(preconditioner, PCNONE));
  require(KSPSetTolerances(solver, 1e-30, 1e-300, PETSC_DEFAULT, iterations));
  return solver;
}

void run(const Rival& rival, const std::string& name, const Grid& grid, const std::function<Mat()>& make) {
  if (!rival.wanted(name)) return;
  Vec x = nullptr, b = nullptr;
  require(DMCreateGlobalVector(grid.dm, &x));
  require(VecDuplicate(x, &b));
  PetscRandom random = nullptr;
  require(PetscRandomCreate(PETSC_COMM_WORLD, &random));
  require(VecSetRandom(x, random));
  Mat matrix = make();
  require(MatMult(matrix, x, b));
  KSP solver = conjugate_gradients(matrix);
  Quartiles time = rival.time([&] { require(KSPSolve(solver, b, x)); });
  for (double* each : {&time.low_ms, &time.median_ms, &time.high_ms}) *each /= iterations;

  PetscInt done = 0;
  PetscReal told = 0, residual = 0, start = 0;
  require(KSPGetIterationNumber(solver, &done));
  require(KSPGetResidualNorm(solver, &told));
  require(VecNorm(b, NORM_2, &start));
  Vec product = nullptr;
  require(VecDuplicate(b, &product));
  require(MatMult(matrix, x, product));
  require(VecAXPY(product, -1, b));
  require(VecNorm(product, NORM_2, &residual));
  rival.require(done == iterations && std::abs(residual - told) < 1e-8 * start && residual < start, name);
  rival.report({.name = name, .time = time});

  require(VecDestroy(&product));
  require(KSPDestroy(&solver));
  require(MatDestroy(&matrix));
  require(PetscRandomDestroy(&random));
  require(VecDestroy(&b));
  require(VecDestroy(&x));
}

}  // namespace

int main(int argc, char** argv) {
  const Rival rival(argc, argv, fmt::format("PETSc {}.{}", PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR));
  require(PetscInitializeNoArguments());
  Grid grid = make_grid(rival.ranks());
  PetscInt local = 0;
  require(DMDAGetCorners(grid.dm, nullptr, nullptr, nullptr, nullptr, nullptr, &local));
  local *= rows * columns;
  run(rival, "CG, Laplacian", grid, [&] { return matrix_free(grid, local); });
  run(rival, "CG assembled, Laplacian", grid, [&] { return assembled(grid); });
  require(VecDestroy(&grid.ghosted));
  require(DMDestroy(&grid.dm));
  require(PetscFinalize());
  return 0;
}
