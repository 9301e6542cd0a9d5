# SPDX-License-Identifier: Apache-2.0
"""What is compared: the rows of the table that `run` prints."""
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rival:
    name: str
    program: str
    package: str  # what brings it


@dataclass(frozen=True)
class Asked:
    """Least values of figures of a row. `either`: one of them is enough."""
    ratio: float = 0      # the rival's time / Shoal's
    of_copy: float = 0    # bandwidth / that of copying
    of_read: float = 0
    of_blas: float = 0    # rate / that of BLAS alone
    ms_at_most: float = 0
    same_digits: int = 0  # misfit and model error agree with the rival's so far
    either: bool = False


NOTHING = Asked()


@dataclass(frozen=True)
class Row:
    group: str
    ranks: int
    program: str  # Shoal's
    case: str     # as both sides print it
    rival: Rival | None = None
    asked: Asked = NOTHING
    slow: bool = False      # left out by --quick
    rival_case: str = ""    # where its name differs

    @property
    def against(self):
        if not self.rival:
            return None
        return self.rival.name + (f" ({self.rival_case})" if self.rival_case else "")

    @property
    def key(self):
        return f"{self.case}, n={self.ranks}" + (f", {self.against}" if self.rival else "")


def base(case):
    """The name that the programs are asked for: they time both directions of an operator."""
    return re.sub(r", (forward|adjoint|crop)$", "", case)


def pylops(program):
    return Rival("pylops-mpi", program, "pylops-mpi from PyPI")


SCALAPACK = Rival("ScaLAPACK", "rival_scalapack", "Debian's libscalapack-openmpi-dev")
FFTW_MPI = Rival("FFTW-MPI", "rival_fftw_mpi", "Debian's libfftw3-mpi-dev")
PETSC = Rival("PETSc", "rival_petsc", "Debian's petsc-dev")
BOTH = ("forward", "adjoint")


def arrays(ranks):
    for case, asked in (("add", Asked(of_copy=0.85)), ("axpy", Asked(of_copy=0.85)),
                        ("dot", Asked(of_read=0.85)), ("norm", Asked(of_read=0.85))):
        for kind in ("float", "double"):
            yield Row("arrays", ranks, "bench_arrays", f"{case} {kind}", pylops("arrays.py"), asked)


def stencils(ranks):
    rival = pylops("stencils.py")
    derivative = Asked(ratio=12, of_copy=0.8)
    for case in ("first derivative 3, axis 0", "first derivative 5, axis 0", "second derivative, axis 0"):
        for way in BOTH:
            yield Row("derivatives", ranks, "bench_stencils", f"{case}, {way}", rival, derivative)
    for axis in (1, 2):
        for way in BOTH:
            yield Row("derivatives", ranks, "bench_stencils", f"first derivative 3, axis {axis}, {way}", None,
                      Asked(of_copy=0.8), slow=True)
    for axis in (0, 2):
        yield Row("halo", ranks, "bench_stencils", f"halo 2, axis {axis}, forward", rival, derivative)
        yield Row("halo", ranks, "bench_stencils", f"halo 2, axis {axis}, crop", rival, derivative)
        yield Row("halo", ranks, "bench_stencils", f"halo 2, axis {axis}, adjoint", None, Asked(of_copy=0.8))
    for case, ratio in (("Laplacian", 35), ("gradient", 20)):
        for way in BOTH:
            yield Row("Laplacian and gradient", ranks, "bench_stencils", f"{case}, {way}", rival, Asked(ratio=ratio))


def stacks(ranks):
    for case in ("block diagonal", "vertical stack", "horizontal stack"):
        for way in BOTH:
            yield Row("stacks", ranks, "bench_stacks", f"{case}, {way}", pylops("stacks.py"),
                      Asked(ratio=1.2, of_blas=0.9, either=True))


def products(ranks):
    grid = {1: "1x1", 2: "1x2", 4: "2x2"}[ranks]
    program, rival = "bench_matrices", pylops("matrices.py")
    real = Asked(of_blas=0.95) if ranks == 1 else Asked(ratio=1.15)
    for way in BOTH:
        yield Row("SUMMA", ranks, program, f"SUMMA 2048 double, grid {grid}, {way}", SCALAPACK, real)
        yield Row("SUMMA", ranks, program, f"SUMMA 1024 complex, grid {grid}, {way}", SCALAPACK, slow=True)
        if ranks == 1:
            yield Row("block product", ranks, program, f"block product 2048 double, {way}", rival, Asked(of_blas=0.95))
        if ranks != 2:  # square numbers of ranks alone
            yield Row("SUMMA", ranks, program, f"SUMMA 2048 double, grid {grid}, {way}", rival)
            yield Row("SUMMA", ranks, program, f"SUMMA 256 complex, grid {grid}, {way}", rival, Asked(ratio=20))


def convolutions(ranks):
    program, rival = "bench_fourier", pylops("fourier.py")
    asked = (lambda ratio: Asked(ratio=ratio)) if ranks == 2 else (lambda ratio: NOTHING)
    for way in BOTH:
        yield Row("Fredholm", ranks, "bench_matrices", f"Fredholm, replicated, {way}", rival, asked(1.5))
        yield Row("MDC", ranks, program, f"MDC, replicated, {way}", rival, asked(4))
        yield Row("convolution", ranks, program, f"non-stationary convolution, axis 0, {way}", rival, slow=True)


def transforms(ranks):
    program, rival = "bench_fourier", pylops("fourier.py")
    for n in (200, 256):
        for kind in ("complex", "real"):
            yield Row(f"FFT {n}", ranks, program, f"FFT {n} {kind}", rival,
                      Asked(ratio=2) if ranks == 1 else NOTHING)
            yield Row(f"FFT {n}", ranks, program, f"FFT {n} {kind}", FFTW_MPI,
                      Asked(ratio=1.5) if ranks == 2 else NOTHING)
            yield Row(f"FFT {n} transposed", ranks, program, f"FFT transposed {n} {kind}", FFTW_MPI,
                      Asked(ratio=1.5) if ranks == 2 else NOTHING, slow=True)


def solvers(ranks):
    program = "bench_solvers"
    yield Row("CG", ranks, program, "CG, Laplacian", PETSC, Asked(ratio=1.6))
    yield Row("CG", ranks, program, "CG pipelined, Laplacian", PETSC, rival_case="CG, Laplacian")
    yield Row("CG assembled", ranks, program, "CG, Laplacian", PETSC, rival_case="CG assembled, Laplacian", slow=True)
    if ranks == 2:
        for case in ("CGLS tiny, block diagonal", "CGLS tiny, vertical stack"):
            yield Row("CGLS", ranks, program, case, pylops("solvers.py"), Asked(ms_at_most=0.010))


def poststack(ranks):
    for case in ("CGLS 100", "normal equations, CG 100", "stacked CGLS 100", "ADMM total variation 5x20"):
        yield Row(f"post-stack {case}", ranks, "bench_poststack", f"post-stack: {case}", pylops("poststack.py"),
                  Asked(ratio=10, same_digits=4), slow=case != "CGLS 100")


def rows():
    for subject in (arrays, stencils, stacks, products, convolutions, transforms, solvers, poststack):
        for ranks in (1, 2, 4) if subject is products else (1, 2):
            yield from subject(ranks)
