# SPDX-License-Identifier: Apache-2.0
"""Algebra and reductions of arrays of 10^7 elements."""
from pylops_mpi import DistributedArray
from timing import measure, random_like, wanted

for kind, dtype in (("float", "float32"), ("double", "float64")):
    x, y = (DistributedArray(global_shape=10_000_000, dtype=dtype) for _ in range(2))
    for array in x, y:
        array[:] = random_like(array.local_shape, dtype)

    def axpy():
        global y
        y += 1e-3 * x

    for name, work in (("add", lambda: x + y), ("axpy", axpy), ("dot", lambda: x.dot(y)), ("norm", lambda: x.norm())):
        if wanted(f"{name} {kind}"):
            measure(f"{name} {kind}", work)
