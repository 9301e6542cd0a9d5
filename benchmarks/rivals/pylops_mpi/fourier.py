# SPDX-License-Identifier: Apache-2.0
"""Transforms (a case is one forward and one backward), the Fredholm operator, multi-dimensional and
non-stationary convolutions."""
import numpy as np
from pylops_mpi import DistributedArray
from pylops_mpi.signalprocessing import MPIFFTND, MPIFredholm1, MPINonStationaryConvolve1D
from pylops_mpi.waveeqprocessing import MPIMDC
from timing import forward_and_adjoint, measure, random_like, replicated, size, slabs, wanted


def transform(name, n, real):
    dims, dtype = (n, n, n), "float64" if real else "complex128"
    op = MPIFFTND(dims, axes=(0, 1, 2), real=real, dtype=dtype)
    x = slabs(dims, dtype)
    y = op @ x

    def both():
        op @ x
        op.H @ y

    measure(name, both)


for n in (200, 256):
    for kind in ("complex", "real"):
        if wanted(f"FFT {n} {kind}"):
            transform(f"FFT {n} {kind}", n, kind == "real")

if wanted("Fredholm, replicated"):
    slices, nx, ny, nz = 200, 200, 200, 50
    op = MPIFredholm1(random_like((slices // size, nx, ny)), nz=nz, saveGt=True, usematmul=True, dtype="float64")
    forward_and_adjoint("Fredholm, replicated", op, replicated(op.shape[1]))

if wanted("MDC, replicated"):
    nt, nr, ns, nv, nf = 401, 100, 100, 20, 200
    kernel = random_like((nf // size, ns, nr), "complex128")
    op = MPIMDC(kernel, nt=nt, nv=nv, nfreq=nf, dt=0.004, dr=1.0, twosided=True)
    forward_and_adjoint("MDC, replicated", op, replicated(op.shape[1]))

if wanted("non-stationary convolution, axis 0"):
    filters = np.tile((np.arange(41) % 17 - 8.0)[None], (8, 1))
    op = MPINonStationaryConvolve1D(dims=(2000, 1000), hs=filters, ih=125 + np.arange(0, 2000, 250), axis=0)
    x = DistributedArray(global_shape=2000 * 1000)
    x[:] = random_like(x.local_shape)
    forward_and_adjoint("non-stationary convolution, axis 0", op, x)
