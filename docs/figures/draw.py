#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of concepts.md, SVG files in this folder."""
from pathlib import Path

COLOURS = ["#9ec5e8", "#f7c88f", "#b5d8a7", "#e6a9b4"]  # of ranks 0 to 3
HERE = Path(__file__).parent


class Figure:
    def __init__(self, width, height):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="13" text-anchor="middle">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]

    def box(self, x, y, width, height, fill, dashed=False):
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="#444444"{dash}/>')

    def text(self, x, y, text, size=13, anchor="middle", weight="normal"):
        self.parts.append(
            f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="#222222">{text}</text>')

    def rank(self, x, y, width, height, rank, label=None):
        self.box(x, y, width, height, COLOURS[rank])
        self.text(x + width / 2, y + height / 2 + 5, rank if label is None else label)

    def arrow(self, x1, y1, x2, y2):
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#444444" stroke-width="1.5"/>')
        sign = 1 if y2 > y1 else -1
        self.parts.append(f'<path d="M {x2 - 4} {y2 - 6 * sign} L {x2} {y2} L {x2 + 4} {y2 - 6 * sign}" '
                          f'fill="none" stroke="#444444" stroke-width="1.5"/>')

    def save(self, name):
        (HERE / name).write_text("\n".join(self.parts + ["</svg>", ""]), encoding="utf-8")


def layouts():
    f = Figure(900, 190)
    size, top = 128, 36

    def title(x, text, width=size):
        f.text(x + width / 2, 22, text, weight="bold")

    def under(x, text, width=size):
        f.text(x + width / 2, top + size + 20, text, size=12)

    x = 16
    title(x, "slabs")
    for r in range(4):
        f.rank(x, top + r * size / 4, size, size / 4, r)
    under(x, "split(shape, 4, 0)")

    x = 166
    title(x, "slabs, axis 1")
    for r in range(4):
        f.rank(x + r * size / 4, top, size / 4, size, r)
    under(x, "split(shape, 4, 1)")

    x = 316
    title(x, "uneven, one empty")
    y = top
    for r, share in ((0, 4), (1, 1), (3, 3)):
        f.rank(x, y, size, share * size / 8, r)
        y += share * size / 8
    under(x, "split_unevenly(…)")

    x = 486
    title(x, "blocks")
    for r in range(4):
        f.rank(x + r % 2 * size / 2, top + r // 2 * size / 2, size / 2, size / 2, r)
    under(x, "blocks(shape, {2, 2})")

    x = 646
    title(x, "replicated")
    for r in (3, 2, 1, 0):
        f.rank(x + r * 11, top + r * 11, size - 33, size - 33, r, "" if r else "all of it")
    under(x, "replicated(shape, 4)")

    x = 788
    title(x, "stack", 96)
    for r in range(4):
        f.rank(x, top + r * 16, 96, 16, r, "")
    f.text(x + 100, top + 37, "a", anchor="start")
    f.box(x, top + 76, 96, 52, COLOURS[0])
    f.text(x + 48, top + 107, "all of it")
    f.text(x + 100, top + 107, "b", anchor="start")
    under(x, "stack({a, b})", 96)
    f.save("layouts.svg")


def stacks():
    f = Figure(900, 226)

    def vector(x, y, width, height, split, label):
        for r in range(2):
            if split:
                f.rank(x, y + r * height / 2, width, height / 2, r)
        if not split:
            f.box(x + 5, y + 5, width, height, COLOURS[1])
            f.box(x, y, width, height, COLOURS[0])
        f.text(x + width / 2, y + height + 22, label)

    top = 44
    f.text(140, 22, "block_diagonal", weight="bold")
    vector(20, top, 26, 120, True, "y")
    f.text(62, top + 65, "=")
    f.box(80, top, 120, 120, "#ffffff")
    f.rank(80, top, 60, 60, 0, "A0")
    f.rank(140, top + 60, 60, 60, 1, "A1")
    vector(216, top, 26, 120, True, "x")
    f.text(140, 216, "no communication", size=12)

    f.text(430, 22, "vertical_stack", weight="bold")
    vector(340, top, 26, 120, True, "y")
    f.text(382, top + 65, "=")
    f.rank(400, top, 60, 60, 0, "A0")
    f.rank(400, top + 60, 60, 60, 1, "A1")
    vector(478, top + 30, 26, 60, False, "x")
    f.text(430, 216, "adjoint: one all_reduce of x", size=12)

    f.text(720, 22, "horizontal_stack", weight="bold")
    vector(610, top + 30, 26, 60, False, "y")
    f.text(660, top + 65, "=")
    f.rank(680, top + 30, 60, 60, 0, "A0")
    f.rank(740, top + 30, 60, 60, 1, "A1")
    vector(818, top, 26, 120, True, "x")
    f.text(720, 216, "forward: one all_reduce of y", size=12)
    f.save("stacks.svg")


def ghost_cells():
    f = Figure(900, 176)
    cell = 28

    def row(y, rank, begin, count, ghosts):
        for i in range(begin, begin + count):
            f.rank(80 + i * cell, y, cell, cell, rank, i)
        for i, owner in ghosts:
            f.box(80 + i * cell, y, cell, cell, COLOURS[owner], dashed=True)
            f.text(80 + i * cell + cell / 2, y + 19, i)
        f.text(66, y + 19, f"rank {rank}", anchor="end")

    row(16, 0, 0, 9, [(9, 1)])
    row(72, 1, 9, 8, [(8, 0), (17, 2)])
    row(128, 2, 17, 8, [(16, 1)])
    f.arrow(80 + 8.5 * cell, 48, 80 + 8.5 * cell, 68)
    f.arrow(80 + 9.5 * cell, 68, 80 + 9.5 * cell, 48)
    f.arrow(80 + 16.5 * cell, 104, 80 + 16.5 * cell, 124)
    f.arrow(80 + 17.5 * cell, 124, 80 + 17.5 * cell, 104)
    f.save("ghost_cells.svg")


if __name__ == "__main__":
    layouts()
    stacks()
    ghost_cells()
