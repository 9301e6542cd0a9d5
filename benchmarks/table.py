# SPDX-License-Identifier: Apache-2.0
"""From the figures of both sides to the lines of the table."""

FRACTIONS = {"of_copy": "copy", "of_read": "read", "of_blas": "BLAS"}
UNSTEADY = 1.25  # Shoal before and after the rival, slower / faster


def result(row, before, rival, after=None, trouble=""):
    """What is known of a row, for JSON. `before`, `rival`, `after`: lines of the programs; None: absent."""
    runs = [line for line in (before, after) if line]
    found = {"what": row.case, "ranks": row.ranks, "against": row.against,
             "shoal": runs, "rival": rival, "trouble": trouble}
    if runs:
        times = [line["ms"]["median"] for line in runs]
        found["ms"] = sum(times) / len(times)
        found["steady"] = max(times) <= UNSTEADY * min(times)
        for name in FRACTIONS:
            if name in runs[0]:
                found[name] = sum(line[name] for line in runs) / len(runs)
        if rival:
            found["rival_ms"] = rival["ms"]["median"]
            found["ratio"] = found["rival_ms"] / found["ms"]
    found["asked"], found["met"] = verdict(row, found)
    return found


def same(a, b, digits):
    return abs(a - b) <= 0.5 * 10.0 ** (1 - digits) * max(abs(a), abs(b))


def verdict(row, found):
    """What is asked, in words, and whether it is met: True, False, or None where it is not known."""
    asked, words, met = row.asked, [], []

    def add(text, name, test):
        words.append(text)
        met.append(test(found[name]) if name in found else None)

    if asked.ratio:
        add(f"{asked.ratio:g}×", "ratio", lambda value: value >= asked.ratio)
    for name, of in FRACTIONS.items():
        least = getattr(asked, name)
        if least:
            add(f"{100 * least:.0f} % of {of}", name, lambda value, least=least: value >= least)
    if asked.ms_at_most:
        add(f"≤ {asked.ms_at_most * 1e3:g} µs", "ms", lambda value: value <= asked.ms_at_most)
    if asked.same_digits and found["shoal"] and found["rival"]:
        words.append(f"same to {asked.same_digits} digits")
        met.append(all(same(found["shoal"][0][name], found["rival"][name], asked.same_digits)
                       for name in ("misfit", "model_error")))
    if asked.either:
        known = [each for each in met if each is not None]
        return " or ".join(words), any(known) if known and (any(known) or len(known) == len(met)) else None
    return ", ".join(words), False if False in met else None if None in met or not met else True


def milliseconds(ms):
    return f"{1e3 * ms:.2f} µs" if ms < 0.1 else f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.2f} s"


def line(found):
    shoal = milliseconds(found["ms"]) if "ms" in found else "-"
    for name, of in FRACTIONS.items():
        if name in found and (f"% of {of}" in found["asked"]):
            shoal += f", {100 * found[name]:.0f} % of {of}"
    if "ms" in found and not found["steady"]:
        shoal += " ~"
    rival = f"{found['against']} {milliseconds(found['rival_ms'])}" if "rival_ms" in found else found["trouble"] or "-"
    ratio = f"{found['ratio']:.2f}" if "ratio" in found else "-"
    met = {True: "yes", False: "no", None: "-"}[found["met"]]
    return f"| {found['what']}, n={found['ranks']} | {shoal} | {rival} | {ratio} | {found['asked'] or '-'} | {met} |"


def markdown(results):
    head = ["| what | Shoal | rival | ratio | asked | met? |", "| --- | --- | --- | --- | --- | --- |"]
    return "\n".join(head + [line(found) for found in results])
