# SPDX-License-Identifier: Apache-2.0
"""Derivatives and halos of a 300 x 200 x 200 array. The library derives along the first axis only, and its
halo's adjoint takes the extended array's own part: Shoal's crop."""
import pylops_mpi
from pylops_mpi import DistributedArray
from timing import forward_and_adjoint, measure, random_like, size, slabs, wanted

dims = (300, 200, 200)
OPERATORS = {
    "first derivative 3, axis 0": lambda: pylops_mpi.MPIFirstDerivative(dims, kind="centered", order=3),
    "first derivative 5, axis 0": lambda: pylops_mpi.MPIFirstDerivative(dims, kind="centered", order=5),
    "second derivative, axis 0": lambda: pylops_mpi.MPISecondDerivative(dims),
    "Laplacian": lambda: pylops_mpi.MPILaplacian(dims, axes=(0, 1, 2), weights=(1, 1, 1), sampling=(1, 1, 1)),
    "gradient": lambda: pylops_mpi.MPIGradient(dims),
}
for name, make in OPERATORS.items():
    if wanted(name):
        forward_and_adjoint(name, make(), slabs(dims))

for axis in (0, 2):
    name = f"halo 2, axis {axis}"
    if wanted(name):
        grid = [1, 1, 1]
        grid[axis] = size
        halo = pylops_mpi.MPIHalo(dims=dims, halo=2, proc_grid_shape=tuple(grid))
        x = DistributedArray(global_shape=dims[0] * dims[1] * dims[2], local_shapes=halo._local_dim_sizes)
        x[:] = random_like(x.local_shape)
        y = halo @ x
        measure(name + ", forward", lambda: halo @ x)
        measure(name + ", crop", lambda: halo.H @ y)
