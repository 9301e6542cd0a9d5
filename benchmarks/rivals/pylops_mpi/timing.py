# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder share: arguments, method and output of Shoal's benchmarks.

    mpirun -n N python3 NAME.py [--seconds S] [CASE ...]
"""
import argparse
import json
import time
from importlib.metadata import version

import numpy as np
from mpi4py import MPI
from pylops_mpi import DistributedArray, Partition

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()

_parser = argparse.ArgumentParser()
_parser.add_argument("--seconds", type=float, default=0.4, help="for each case")
_parser.add_argument("cases", nargs="*", help="parts of names (default: all)")
arguments = _parser.parse_args()

LEAST, MOST = 3, 200  # repeats of a case


def wanted(name):
    return not arguments.cases or any(case in name for case in arguments.cases)


def report(name, ms, **more):
    """Prints a line for the case; `ms`: times of the slowest rank."""
    if rank == 0:
        low, median, high = (float(q) for q in np.percentile(ms, [25, 50, 75]))
        line = {"case": name, "ranks": size, "transport": "mpi", "library": "pylops-mpi " + version("pylops-mpi"),
                "ms": {"low": low, "median": median, "high": high}, "repeats": len(ms), **more}
        print(json.dumps(line), flush=True)


def once(work):
    """Milliseconds of the slowest rank, and what `work` returned."""
    world.Barrier()
    start = time.perf_counter()
    result = work()
    return 1e3 * world.allreduce(time.perf_counter() - start, op=MPI.MAX), result


def measure(name, work, inner=1, divide=1):
    """Times `work`, of which `inner` calls count as one and which does the same thing `divide` times."""
    def all_inner():
        for _ in range(inner):
            work()

    all_inner()
    ms = []
    while len(ms) < MOST and (len(ms) < LEAST or sum(ms) < 1e3 * arguments.seconds):
        ms.append(once(all_inner)[0])
    report(name, [each / inner / divide for each in ms])


def forward_and_adjoint(name, op, x):
    y = op @ x
    measure(name + ", forward", lambda: op @ x)
    measure(name + ", adjoint", lambda: op.H @ y)


def generator(seed=0):
    return np.random.default_rng(1234 + 1000 * seed + rank)


def random_like(shape, dtype="float64", seed=0):
    values = generator(seed).standard_normal(shape)
    if np.issubdtype(np.dtype(dtype), np.complexfloating):
        values = values + 1j * generator(seed + 1).standard_normal(shape)
    return values.astype(dtype)


def slabs(dims, dtype="float64"):
    """A flat array of random numbers that is split as an array of `dims` is along its first axis."""
    local = int(np.prod(DistributedArray(global_shape=dims).local_shape))
    x = DistributedArray(global_shape=int(np.prod(dims)), local_shapes=world.allgather(local), dtype=dtype)
    x[:] = random_like(x.local_shape, dtype)
    return x


def replicated(n, dtype="float64"):
    x = DistributedArray(global_shape=n, partition=Partition.BROADCAST, dtype=dtype)
    x[:] = np.random.default_rng(3).standard_normal(n).astype(dtype)
    return x
