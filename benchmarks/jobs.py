# SPDX-License-Identifier: Apache-2.0
"""Starting the programs of both sides, and what they need."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# pylops-mpi from PyPI, with what its parts that are measured here ask for.
PYPI = ["pylops-mpi", "pylops", "pyproximal", "mpi4py", "mpi4py-fft", "numba", "scipy"]
LONGEST_S = 180  # for one program


def environment():
    """For both sides: OpenBLAS chooses for itself, and a rank has one thread."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    env.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    if os.geteuid() == 0:
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return env


def same_kernels():
    """Debian's OpenBLAS knows no Intel processor newer than itself, and takes it for an old one. Shoal tells it
    better (src/linop/blas.cpp); the rivals that use it get the same."""
    try:
        cpu = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    return {"OPENBLAS_CORETYPE": "SkylakeX"} if "GenuineIntel" in cpu and "avx512bw" in cpu else {}


def launcher(ranks):
    """The same for both sides."""
    name = "mpirun.openmpi" if shutil.which("mpirun.openmpi") else "mpirun"
    command = [name, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    if ranks > os.cpu_count():
        command += ["--mca", "mpi_yield_when_idle", "1"]
    return command


def run_program(command, ranks, env):
    """The lines of JSON that it prints, by case, and why there are no more ("": all is well)."""
    try:
        done = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LONGEST_S)
    except FileNotFoundError as error:
        return {}, f"{error.filename} is not there"
    except subprocess.TimeoutExpired:
        return {}, f"no end after {LONGEST_S} s"
    printed = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    if any(line["ranks"] != ranks for line in printed):
        return {}, f"{printed[0]['ranks']} rank(s) where {ranks} were started: another MPI than the launcher's?"
    trouble = f"exit code {done.returncode}: {reason(done.stderr)}" if done.returncode else ""
    return {line["case"]: line for line in printed}, trouble


def reason(text):
    """The line of an error output that says most."""
    said = [line.strip() for line in text.splitlines() if line.strip().strip("-*")]
    errors = [line for line in said if "error" in line.lower()] or said or ["no message"]
    return errors[0][:160]


class Sides:
    """Where the programs are, and how they are started; the results are run_program()'s."""

    def __init__(self, build, venv, transport, seconds):
        self.build, self.venv, self.transport, self.seconds = build, venv, transport, seconds
        self.pylops_trouble = None

    def shoal(self, program, ranks, cases):
        command = [self.build / "bin" / program, "--transport", self.transport, "--ranks", ranks,
                   "--seconds", self.seconds, *cases]
        if self.transport == "mpi":
            command = launcher(ranks) + command
        elif self.transport == "shmem":
            command = ["oshrun", *launcher(ranks)[1:], "--mca", "osc", "^rdma", *command]
        return run_program(command, ranks, environment() | self.model())

    def rival(self, rival, ranks, cases):
        arguments = ["--seconds", self.seconds, *cases]
        if rival.program.endswith(".py"):
            if self.pylops_trouble:
                return {}, self.pylops_trouble
            command = [self.venv / "bin" / "python3", HERE / "rivals" / "pylops_mpi" / rival.program]
            return run_program(launcher(ranks) + command + arguments, ranks, environment() | self.model())
        program = self.build / "bin" / rival.program
        if not program.exists():
            return {}, f"not built: needs {rival.package}"
        more = {"RIVAL_FFTW_WISDOM": str(self.build / f"fftw_wisdom_{ranks}")}
        return run_program(launcher(ranks) + [program] + arguments, ranks, environment() | same_kernels() | more)

    def model(self):
        """Of the post-stack inversion; both sides read the same."""
        name = "SHOAL_POSTSTACK_MODEL"
        folder = os.environ.get("SHOAL_TEST_DATA", ROOT.parent / "shared" / "data")
        return {name: os.environ.get(name, str(Path(folder) / "poststack_model.npz"))}


def build_shoal(folder):
    """An optimised build of the benchmarks and transports."""
    print(f"run: building in {folder}", file=sys.stderr)
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DSHOAL_BUILD_TESTS=OFF", "-DSHOAL_BUILD_BENCHMARKS=ON"], check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", folder, "benchmarks"], check=True, stdout=sys.stderr)


def make_venv(folder):
    """A Python environment with pylops-mpi at `folder`, unless it is there; why not, if it cannot be made."""
    python = folder / "bin" / "python3"
    try:
        if not python.exists():
            print(f"run: installing pylops-mpi in {folder}", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, text=True)
            subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *PYPI],
                           check=True, capture_output=True, text=True)
        subprocess.run([python, "-c", "import pylops_mpi"], check=True, capture_output=True, text=True,
                       env=environment())
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip().splitlines() or ["no message"]
        return f"no pylops-mpi in {folder}: {said[-1][:160]}"
    return None
