# SPDX-License-Identifier: Apache-2.0
"""Products of square matrices; the library takes square numbers of ranks only."""
import math

from pylops_mpi import DistributedArray, Partition
from pylops_mpi.basicoperators.MatrixMult import MPIMatrixMult
from timing import forward_and_adjoint, random_like, size, wanted, world

side = math.isqrt(size)
if side * side != size:
    raise SystemExit(f"{size} ranks: MPIMatrixMult needs a square number of them")


def summa(n, dtype):
    own = (n // side, n // side)
    op = MPIMatrixMult(random_like(own, dtype), n, kind="summa", dtype=dtype)
    x = DistributedArray(global_shape=n * n, local_shapes=world.allgather(own[0] * own[1]),
                         partition=Partition.SCATTER, dtype=dtype)
    x[:] = random_like(own[0] * own[1], dtype)
    return op, x


def block(n, dtype):
    rows = n // side
    op = MPIMatrixMult(random_like((rows, n), dtype), n, kind="block", dtype=dtype)
    local = world.allgather(n * rows)
    x = DistributedArray(global_shape=sum(local), local_shapes=local, partition=Partition.SCATTER,
                         mask=[i % side for i in range(size)], dtype=dtype)
    x[:] = random_like(n * rows, dtype)
    return op, x


for n, kind, dtype in ((2048, "double", "float64"), (1024, "complex", "complex128"), (256, "complex", "complex128")):
    for name, make in ((f"SUMMA {n} {kind}, grid {side}x{side}", summa), (f"block product {n} {kind}", block)):
        if wanted(name):
            forward_and_adjoint(name, *make(n, dtype))
