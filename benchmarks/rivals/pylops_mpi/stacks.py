# SPDX-License-Identifier: Apache-2.0
"""Block diagonal, vertical and horizontal stacks of eight dense 2500 x 2500 matrices."""
import pylops
import pylops_mpi
from pylops_mpi import DistributedArray
from timing import forward_and_adjoint, random_like, replicated, size, wanted

BLOCKS, N = 8, 2500
if BLOCKS % size:
    raise SystemExit(f"{BLOCKS} blocks cannot be dealt out evenly to {size} ranks")
blocks = [pylops.MatrixMult(random_like((N, N), seed=b), dtype="float64") for b in range(BLOCKS // size)]


def split():
    x = DistributedArray(global_shape=BLOCKS * N)
    x[:] = random_like(x.local_shape)
    return x


for name, make, x in (("block diagonal", pylops_mpi.MPIBlockDiag, split),
                      ("vertical stack", pylops_mpi.MPIVStack, lambda: replicated(N)),
                      ("horizontal stack", pylops_mpi.MPIHStack, split)):
    if wanted(name):
        forward_and_adjoint(name, make(blocks), x())
