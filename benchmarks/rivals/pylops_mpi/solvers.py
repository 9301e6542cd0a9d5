# SPDX-License-Identifier: Apache-2.0
"""The time of an iteration of CGLS on 32 elements a rank."""
import numpy as np
import pylops
import pylops_mpi
from pylops_mpi import DistributedArray
from timing import generator, measure, replicated, size, wanted

ITERATIONS = 200
# Ill-conditioned on purpose: no iteration of those that are timed finds the residual zero.
diagonal = pylops.Diagonal(np.logspace(0, -6, 32))


def split():
    x = DistributedArray(global_shape=32 * size)
    x[:] = generator().random(32)
    return x


for name, make, x in (("CGLS tiny, block diagonal", pylops_mpi.MPIBlockDiag, split),
                      ("CGLS tiny, vertical stack", pylops_mpi.MPIVStack, lambda: replicated(32))):
    if wanted(name):
        op, solution = make([diagonal]), x()
        data, start = op @ solution, solution.zeros_like()
        measure(name, lambda: pylops_mpi.cgls(op, data, x0=start, niter=ITERATIONS, tol=-1.0), divide=ITERATIONS)
