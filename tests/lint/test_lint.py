#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that each rule of lint.py finds what it is there for, on made-up repositories."""
import shutil
import tempfile
import unittest
from pathlib import Path

import lint

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


class Lint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def found(self, rule, *extra):
        """Findings without their text, as a sorted list of the places they name."""
        return sorted(finding.split(": ")[0] for finding in rule(self.root, *extra))

    def test_transports(self):
        self.write("src/comm/mpi/transport.cpp", "#include <mpi.h>\nMPI_Init(nullptr, nullptr);\n")
        self.write("src/comm/shmem/transport.cpp", "#include <shmem.h>\n")
        self.write("benchmarks/rivals/library.cpp", "#include <mpi.h>\n")
        self.write("src/comm/communicator.cpp", "// MPI is one of them; OMPI_COMM_WORLD_RANK; \"shmem_openmpi\"\n")
        self.assertEqual(self.found(lint.transports), [])
        self.write("src/infer/engine.cpp", "#include <vector>\nMPI_Init(nullptr, nullptr);\n// see shmem_put\n")
        self.write("src/comm/job.cpp", "#  include <mpp/shmem.h>\n")
        self.write("apps/shoal/main.cpp", '#include "mpi.h"\n')
        self.write("include/shoal/comm/a.h", "ncclSend(a, b);\n")
        self.write("tests/comm/test_a.cpp", "double t = PMPI_Wtime();\n")
        self.write("benchmarks/bench_a.cpp", "double t = MPI_Wtime();\n")
        self.assertEqual(self.found(lint.transports), [
            "apps/shoal/main.cpp:1", "benchmarks/bench_a.cpp:1", "include/shoal/comm/a.h:1", "src/comm/job.cpp:1",
            "src/infer/engine.cpp:2", "src/infer/engine.cpp:3", "tests/comm/test_a.cpp:1"])

    def test_includes(self):
        self.write("include/shoal/infer/a.h", '#include <vector>\n#include "shoal/base/error.h"\n')
        self.write("src/solver/a.cpp", '#include <fmt/format.h>\n#include "solver/b.h"\n#include "shoal/comm/a.h"\n')
        self.assertEqual(self.found(lint.includes), [])
        self.write("src/base/a.cpp", '#include "shoal/comm/a.h"\n')
        self.write("src/tensor/a.cpp", '#include "base/secret.h"\n#include <shoal/infer/gguf.h>\n')
        self.write("include/shoal/comm/a.h", '#include <fmt/format.h>\n#include "comm/wait.h"\n')
        self.write("src/other/a.cpp", "\n")
        self.assertEqual(self.found(lint.includes), [
            "include/shoal/comm/a.h:1", "include/shoal/comm/a.h:2", "src/base/a.cpp:1", "src/other/a.cpp:1",
            "src/tensor/a.cpp:1", "src/tensor/a.cpp:2"])

    def test_links(self):
        good = ("src/base\tshoal_base\tThreads::Threads;shoal_flags\n"
                "src/comm\tshoal_comm\tshoal::base;$<BUILD_INTERFACE:shoal_flags>\n"
                "src/comm/mpi\tshoal_transport_mpi\tshoal::comm;MPI::MPI_C\n"
                "src/tensor/avx2\tshoal_kernels_avx2\tshoal::base\n"
                "src/tensor\tshoal_tensor\tshoal::base;shoal_kernels_avx2\n"
                "src/infer\tshoal_infer\tshoal::tensor;shoal::comm\n"
                "tests/comm\ttest_comm\tshoal::infer;MPI::MPI_C\n")
        self.assertEqual(self.found(lint.links, self.write("links", good)), [])
        bad = good + ("src/base\tshoal_more\t$<LINK_ONLY:shoal::comm>\n"
                      "src/tensor\tshoal_device\tshoal::comm\n"
                      "src/comm\tshoal_jobs\tMPI::MPI_C\n"
                      "src/tensor\tshoal_blocks\tPkgConfig::OPENMPI\n"
                      "src/infer\tshoal_words\tshoal::solver\n"
                      "src/odd\tshoal_odd\tshoal::base\n")
        self.assertEqual(self.found(lint.links, self.write("links", bad)),
                         ["src/base", "src/comm", "src/infer", "src/odd", "src/tensor", "src/tensor"])

    def test_licence(self):
        self.write("src/base/a.cpp", SPDX)
        self.write("check", "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n")
        self.assertEqual(self.found(lint.licence), [])
        self.write("src/CMakeLists.txt", "add_subdirectory(base)\n")
        self.write(".ci/run", "#!/usr/bin/env bash\n")
        self.write("a.h", "#pragma once\n\n" + SPDX)
        self.assertEqual(self.found(lint.licence), [".ci/run:1", "a.h:1", "src/CMakeLists.txt:1"])

    def test_documents(self):
        self.write("docs/a.md", "[b](b.md) [top](../README.md#words) [w](https://example.org/x)\n")
        self.write("docs/b.md", "")
        self.write("README.md", "[a](docs/a.md)\n")
        self.assertEqual(self.found(lint.documents), [])
        self.write("README.md", "[a](docs/a.md)\n[c](docs/c.md)\n")
        self.assertEqual(self.found(lint.documents), ["README.md:2"])

    def test_checklist(self):
        self.write("tests/array/test_a.cpp", "TEST(Norms, OfAll) {\nTYPED_TEST(CgOf, Solves) {\n")
        self.write("docs/checklist.md", "| `array.Norms.OfAll`, `solver.CgOf/*.Solves` | `linop.mpi.6` |\n")
        self.assertEqual(self.found(lint.checklist), [])
        self.write("docs/checklist.md", "`array.Norms.OfAll`\n`solver.CgOf/*.Fails`, `array.io.Npy.Reads`\n")
        self.assertEqual(self.found(lint.checklist), ["docs/checklist.md:2", "docs/checklist.md:2"])

    def test_format(self):
        style = Path(__file__).resolve().parents[2] / ".clang-format"
        shutil.copy(style, self.root)
        for top in ("include", "src", "apps", "tests", "benchmarks"):
            self.write(f"{top}/good.cpp", "int a;\n")
        self.write("src/bad.cpp", "int  a ;\n")
        try:
            self.assertEqual(self.found(lint.format), ["src/bad.cpp"])
        except lint.CannotCheck as reason:
            self.skipTest(str(reason))


if __name__ == "__main__":
    unittest.main()
