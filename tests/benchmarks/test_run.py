#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""benchmarks/run on made-up programs: what it starts, what it says of figures, and of those that are missing."""
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from rows import Asked, Row, pylops, rows  # noqa: E402
from table import markdown, result  # noqa: E402


def line(case, ms, **more):
    return {"case": case, "ranks": 1, "ms": {"low": ms, "median": ms, "high": ms}, **more}


class Table(unittest.TestCase):
    def met(self, asked, shoal, rival):
        return result(Row("g", 1, "p", "c", pylops("x.py"), asked), shoal, rival)["met"]

    def test_all_that_is_asked_must_be_met(self):
        asked = Asked(ratio=12, of_copy=0.8)
        self.assertTrue(self.met(asked, line("c", 1, of_copy=0.9), line("c", 12)))
        self.assertFalse(self.met(asked, line("c", 1, of_copy=0.9), line("c", 11)))
        self.assertFalse(self.met(asked, line("c", 1, of_copy=0.7), line("c", 12)))
        self.assertFalse(self.met(asked, line("c", 1, of_copy=0.7), None))
        self.assertIsNone(self.met(asked, line("c", 1, of_copy=0.9), None))

    def test_one_of_several_is_enough(self):
        asked = Asked(ratio=1.2, of_blas=0.9, either=True)
        self.assertTrue(self.met(asked, line("c", 1, of_blas=0.9), None))
        self.assertTrue(self.met(asked, line("c", 1, of_blas=0.5), line("c", 1.3)))
        self.assertFalse(self.met(asked, line("c", 1, of_blas=0.5), line("c", 1.1)))
        self.assertIsNone(self.met(asked, line("c", 1, of_blas=0.5), None))

    def test_digits(self):
        asked = Asked(ratio=10, same_digits=4)
        shoal = line("c", 1, misfit=3.2759e-3, model_error=0.1)
        self.assertTrue(self.met(asked, shoal, line("c", 10, misfit=3.2760e-3, model_error=0.1)))
        self.assertFalse(self.met(asked, shoal, line("c", 10, misfit=3.2859e-3, model_error=0.1)))

    def test_a_changed_pace_is_marked(self):
        row = Row("g", 2, "p", "c", pylops("x.py"), Asked(ratio=2))
        steady = result(row, line("c", 1), line("c", 4), line("c", 1.2))
        self.assertIn("| c, n=2 | 1.1 ms | pylops-mpi 4 ms | 3.64 | 2× | yes |", markdown([steady]))
        self.assertIn("1.15 ms ~ |", markdown([result(row, line("c", 1), line("c", 4), line("c", 1.3))]))

    def test_rows_are_distinct(self):
        keys = [row.key for row in rows()]
        self.assertEqual(len(keys), len(set(keys)))


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        # A launcher that leaves out its options and starts one process.
        self.program("path/mpirun.openmpi", 'while [ "$1" != -n ]; do shift; done; shift 2; exec "$@"')

    def program(self, name, script):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def prints(self, name, *lines):
        self.program(name, "\n".join(f"echo '{json.dumps(each)}'" for each in lines))

    def run_it(self, *arguments):
        environment = os.environ | {"PATH": f"{self.root / 'path'}:{os.environ['PATH']}"}
        command = [sys.executable, BENCHMARKS / "run", "--build", self.root, "--venv", self.root / "venv",
                   "--json", self.root / "figures.json", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50)

    def test_both_sides(self):
        self.prints("bin/bench_solvers", line("CG, Laplacian", 10))
        self.prints("bin/rival_petsc", line("CG, Laplacian", 17))
        done = self.run_it("--only", "CG, Laplacian, n=1, PETSc", "--quick")
        self.assertIn("| CG, Laplacian, n=1 | 10 ms | PETSc 17 ms | 1.70 | 1.6× | yes |", done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0)
        kept = self.run_it("--table")
        self.assertEqual(kept.stdout, done.stdout)

    def test_figures_of_other_rows_are_kept(self):
        self.prints("bin/bench_solvers", line("CG, Laplacian", 10), line("CG pipelined, Laplacian", 11))
        for case in ("CG, Laplacian", "CG pipelined, Laplacian"):
            self.run_it("--only", f"{case}, n=1", "--quick")
        table = self.run_it("--table").stdout
        self.assertIn("| CG, Laplacian, n=1 | 10 ms |", table)
        self.assertIn("| CG pipelined, Laplacian, n=1 | 11 ms |", table)

    def test_a_rival_that_is_not_there(self):
        self.prints("bin/bench_solvers", line("CG, Laplacian", 10))
        done = self.run_it("--only", "CG, Laplacian, n=1, PETSc", "--quick")
        self.assertIn("| CG, Laplacian, n=1 | 10 ms | PETSc: not built: needs Debian's petsc-dev | - | 1.6× | - |",
                      done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_a_failure_of_ours(self):
        self.program("bin/bench_solvers", "echo 'error: the residual is wrong' >&2; exit 1")
        self.prints("bin/rival_petsc", line("CG, Laplacian", 17))
        done = self.run_it("--only", "CG, Laplacian, n=1, PETSc", "--quick")
        self.assertIn("Shoal: exit code 1: error: the residual is wrong", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_a_rival_that_fails_half_way(self):
        self.prints("bin/bench_solvers", line("CG, Laplacian", 10), line("CG pipelined, Laplacian", 11))
        self.program("bin/rival_petsc", f"echo '{json.dumps(line('other', 1))}'; echo 'out of memory' >&2; exit 3")
        done = self.run_it("--only", "CG, Laplacian, n=1, PETSc", "--quick")
        self.assertIn("| 10 ms | PETSc: exit code 3: out of memory |", done.stdout)

    def test_ranks_that_do_not_know_each_other(self):
        self.prints("bin/bench_solvers", line("CG, Laplacian", 10))
        done = self.run_it("--only", "CG, Laplacian, n=2, PETSc", "--quick")
        self.assertIn("Shoal: 1 rank(s) where 2 were started", done.stdout)

    def test_pylops_that_cannot_be_had(self):
        self.prints("bin/bench_solvers", line("CGLS tiny, block diagonal", 0.005) | {"ranks": 2})
        self.program("venv/bin/python3", "echo 'no module named pylops_mpi' >&2; exit 1")
        done = self.run_it("--only", "CGLS tiny, block", "--quick")
        self.assertIn("| 5.00 µs | pylops-mpi: no pylops-mpi in", done.stdout)
        self.assertIn("no module named pylops_mpi", done.stdout)


if __name__ == "__main__":
    unittest.main()
