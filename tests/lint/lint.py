#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the repository that no compiler checks.

    lint.py RULE [--root DIR] [--links FILE]

Prints one line a finding and exits 1 if there is any, 77 if the rule cannot be checked here.
Each rule is a function that takes the repository's root and yields findings; test_lint.py shows
that each of them can fail.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CPP = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh"}
SKIP = 77  # ctest's SKIP_RETURN_CODE


class CannotCheck(Exception):
    pass


def files(root, *tops, suffixes=None):
    """Files of the repository under the folders `tops` (all if none), without build folders."""
    for top in [root / t for t in tops] or [root]:
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(f for f in folders if f == ".ci" or not f.startswith((".", "build", "__")))
            for name in sorted(names):
                path = Path(folder, name)
                if suffixes is None or path.suffix in suffixes:
                    yield path


def lines(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


# ------------------------------------------------------------------ who may depend on whom


def allowed_layers():
    """For each layer, itself and all those below it."""
    direct = json.loads(Path(__file__).with_name("layers.json").read_text())

    def below(layer):
        return {layer}.union(*(below(other) for other in direct[layer]))

    return {layer: below(layer) for layer in direct}


def layer_of(relative):
    """The layer of src/X/..., include/shoal/X/...; None elsewhere."""
    parts = relative.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "shoal") and len(parts) > 3:
        return parts[2]
    return None


def transports(root):
    """MPI, OpenSHMEM and NCCL are named in src/comm/<transport>/ only (and its tests, and those of this rule), and
    in the programs that Shoal is measured against."""
    named = re.compile(r"\b(P?MPIX?_[A-Z]\w+|p?shmemx?_[a-z]\w+|p?nccl[A-Z]\w+)\b")
    included = re.compile(r'#\s*include\s*[<"](mpi|mpp/|p?shmem|nccl)')
    # Look alike: an environment variable that MPICH's launcher sets, and the names of modules.
    others = {"MPI_LOCALNRANKS", "shmem_openmpi", "shmem_sandia"}
    own = re.compile(r"(src|tests)/comm/(mpi|shmem|nccl)/|tests/lint/|benchmarks/rivals/")
    for path in files(root, "include", "src", "apps", "python", "tests", "tools", "benchmarks",
                      suffixes=CPP | {".py"}):
        relative = path.relative_to(root)
        if own.match(relative.as_posix()):
            continue
        for number, line in lines(path):
            found = [match[0] for match in (*named.finditer(line), *included.finditer(line))]
            if names := [name for name in found if name not in others]:
                yield f"{relative}:{number}: {names[0]!r} belongs into src/comm/<transport>/ only"


def includes(root):
    """Headers come from the same layer or one below, and from its public headers; public headers
    need nothing but Shoal and the standard library."""
    allowed = allowed_layers()
    include = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
    for path in files(root, "include", "src", suffixes=CPP):
        relative = path.relative_to(root)
        layer = layer_of(relative)
        if layer not in allowed:
            yield f"{relative}:1: not in a folder of a layer (tests/lint/layers.json)"
            continue
        public = relative.parts[0] == "include"
        for number, line in lines(path):
            if not (found := include.match(line)):
                continue
            bracket, name = found.groups()
            parts = name.split("/")
            where = f"{relative}:{number}: "
            if parts[0] == "shoal":
                if parts[1] not in allowed[layer]:
                    yield f"{where}{layer} may not use {parts[1]} ({name})"
            elif public and (bracket == '"' or not re.fullmatch(r"[a-z_0-9]+", name)):
                yield f"{where}a public header includes {name}, neither Shoal's nor the standard library's"
            elif bracket == '"' and len(parts) > 1 and parts[0] in allowed and parts[0] != layer:
                yield f"{where}private header of another layer ({name})"


def links(root, links_file):
    """Targets link to the same layer or one below. `links_file` has, for each target, a line
    of folder, target and linked libraries, separated by tabs."""
    allowed = allowed_layers()
    rows = [line.split("\t") for line in links_file.read_text().splitlines()]
    owner = {target: layer_of(Path(folder, "x")) for folder, target, _ in rows}
    for folder, target, libraries in rows:
        layer = owner[target]
        if layer is None:
            continue
        if layer not in allowed:
            yield f"{folder}: {target} is in no layer (tests/lint/layers.json)"
            continue
        for other in re.findall(r"shoal(?:::|_)\w+", libraries):
            other = other.replace("::", "_")
            if other != "shoal_flags" and owner.get(other) not in allowed[layer]:
                yield f"{folder}: {target} of layer {layer} may not link {other}"
        library = re.search(r"MPI::\w+|\w*(?:openmpi|mpich|shmem|nccl)\w*", libraries, re.I)
        if library and not re.match(r"src/comm/\w+", folder):
            yield f"{folder}: {target} links {library[0]}, which belongs into src/comm/<transport>/ only"


# ------------------------------------------------------------------ form


def licence(root):
    """Every source and script says its licence in its first two lines."""
    suffixes = CPP | {".py", ".cmake", ".in", ".sh"}
    names = {"CMakeLists.txt", "quickstart", "check", "run", ".clang-tidy", ".clang-format"}
    for path in files(root):
        if path.suffix in suffixes or path.name in names:
            head = [line for number, line in lines(path) if number <= 2]
            if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
                yield f"{path.relative_to(root)}:1: no line 'SPDX-License-Identifier: Apache-2.0'"


def documents(root):
    """Relative links of Markdown files lead to something."""
    for path in files(root, suffixes={".md"}):
        for number, line in lines(path):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if "://" not in target and not (path.parent / target).exists():
                    yield f"{path.relative_to(root)}:{number}: nothing at {target}"


def checklist(root):
    """Tests that docs/checklist.md names, as ctest does (layer.Suite.Case), are there."""
    page = root / "docs" / "checklist.md"
    named = re.compile(r"`[a-z_.]+\.(?:\w+/)?([A-Z]\w+)(?:/\*)?\.([A-Z]\w+)(?:/\*)?`")
    macro = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+), (\w+)\)", re.M)
    there = {found for path in files(root, "tests", suffixes={".cpp"}) for found in macro.findall(path.read_text())}
    for number, line in lines(page):
        for test in named.findall(line):
            if test not in there:
                yield f"{page.relative_to(root)}:{number}: there is no test {'.'.join(test)}"


def format(root):
    """clang-format 14 (Debian 12) would change nothing; other versions have other opinions."""
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program else ""
    if not re.search(r"version 14\.", version):
        raise CannotCheck(f"needs clang-format 14 (Debian package clang-format), found {version.strip() or 'none'}")
    sources = list(files(root, "include", "src", "apps", "tests", "benchmarks", suffixes=CPP))
    command = [program, "--dry-run", "--style=file", *sources]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    for name in sorted(set(re.findall(r"^(.+?):\d+:\d+: warning", done.stderr, re.M))):
        yield f"{os.path.relpath(name, root)}: not formatted (clang-format -i mends it)"


RULES = {rule.__name__: rule for rule in (transports, includes, links, licence, documents, checklist, format)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rule", choices=RULES)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--links", type=Path, help="file of links, written by CMake (rule `links`)")
    arguments = parser.parse_args()
    extra = [arguments.links] if arguments.rule == "links" else []
    try:
        findings = list(RULES[arguments.rule](arguments.root, *extra))
    except CannotCheck as reason:
        print(f"skipped: {reason}")
        return SKIP
    print(*findings, sep="\n", end="\n" if findings else "")
    print(f"{arguments.rule}: {len(findings)} finding(s)")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
