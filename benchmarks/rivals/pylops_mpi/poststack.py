# SPDX-License-Identifier: Apache-2.0
"""Post-stack seismic inversion in four ways: the steps of pylops-mpi's tutorial on this subject, on the model of
../../bench_poststack.cpp. The environment: SHOAL_POSTSTACK_MODEL (needed), SHOAL_POSTSTACK_NY (8)."""
import os

import numpy as np
import pylops_mpi
from pylops.avo.poststack import PoststackLinearModelling
from pylops.basicoperators import Transpose
from pylops.utils.wavelets import ricker
from pyproximal.proximal import L1
from scipy.signal import filtfilt
from timing import once, report, size, wanted

ny = int(os.environ.get("SHOAL_POSTSTACK_NY", 8))
if ny % size:
    raise SystemExit(f"{ny} planes cannot be dealt out evenly to {size} ranks")
section = np.log(np.load(os.environ["SHOAL_POSTSTACK_MODEL"])["model"])[:, ::3]
nz, nx = section.shape
dims = (ny, nx, nz)

traces = np.tile(section.T[None], (ny // size, 1, 1))
smooth = traces
for axis, length in ((1, 30), (2, 20)):
    smooth = filtfilt(np.ones(length) / length, 1, smooth, axis=axis)


def distributed(values):
    x = pylops_mpi.DistributedArray(global_shape=int(np.prod(dims)))
    x[:] = values.ravel()
    return x


wavelet = ricker(np.arange(21) * 0.004, 15)[0]
modelling = PoststackLinearModelling(wavelet, nt0=nz, spatdims=(ny // size, nx))
order = Transpose((ny // size, nx, nz), (2, 0, 1))
B = pylops_mpi.MPIBlockDiag(ops=[order.H @ modelling @ order])
model, start = distributed(traces), distributed(smooth)
data = B @ model
epsilon = 1e2


def norm(x):
    """A number, whether the library returns one or an array of one (versions differ)."""
    return float(np.asarray(x.norm()).ravel()[0])


def laplacian():
    return pylops_mpi.MPILaplacian(dims=dims, axes=(0, 1, 2), weights=(1, 1, 1), sampling=(1, 1, 1), dtype=B.dtype)


def normal_equations():
    L = laplacian()
    return pylops_mpi.cg(B.H @ B + epsilon * L.H @ L, B.H @ data, x0=start, niter=100)[0]


def stacked():
    system = pylops_mpi.MPIStackedVStack([B, np.sqrt(epsilon) * laplacian()])
    right = pylops_mpi.StackedDistributedArray([data, distributed(np.zeros(traces.size))])
    return pylops_mpi.cgls(system, right, x0=start, niter=100)[0]


def total_variation():
    gradient = pylops_mpi.MPIGradient(dims=dims, sampling=1.0, edge=False, kind="forward")
    return pylops_mpi.proximal.optimization.primal.ADMML2(
        pylops_mpi.proximal.MPIProxOperator(L1(sigma=1e-2)), B, data, gradient, x0=start, tau=0.99 / 12, niter=5,
        kwargs_solver={"niter": 20})[0]


for name, invert in (("post-stack: CGLS 100", lambda: pylops_mpi.cgls(B, data, x0=start, niter=100)[0]),
                     ("post-stack: normal equations, CG 100", normal_equations),
                     ("post-stack: stacked CGLS 100", stacked),
                     ("post-stack: ADMM total variation 5x20", total_variation)):
    if wanted(name):
        ms, x = once(invert)
        report(name, [ms], misfit=norm(data - B @ x) / norm(data), model_error=norm(x - model) / norm(model))
