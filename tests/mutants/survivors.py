"""Reads what mutmut found: each mutant of gpuslice/rules.py is killed by a test, or said here to be none.

mutmut run && python tests/mutants/survivors.py
"""

import subprocess
import sys

# The changes that no test can see: the line, what becomes of it, and why that is the same.
EQUIVALENT = {
    ("if step > 0:", "if step >= 0:"): "a step of 0 is refused before",
    (
        "start, end = _clamp(start, 0, dim - 1), _clamp(end, -1, dim - 1)",
        "start, end = _clamp(start, 0, dim - 1), _clamp(end, -1, dim + 1)",
    ): "with a negative step, an end above the last start selects nothing, wherever it is",
    (
        "return low if value < low else min(value, high)",
        "return low if value <= low else min(value, high)",
    ): "this differs only if high is below low: on an empty axis, of which nothing is selected",
}
# mutmut's words for a mutant that a test has found. One that runs without end is found too.
FOUND = ("killed", "timeout")


def mutmut(*arguments):
    """Return what a command of mutmut prints."""
    return subprocess.run(["mutmut", *arguments], capture_output=True, text=True, check=True).stdout


def results():
    """Return what became of each mutant, by its name."""
    lines = [line.strip().split(": ") for line in mutmut("results", "--all", "true").splitlines() if ": " in line]
    return {name: result for name, result in lines if name.startswith("gpuslice.")}


def change(mutant):
    """Return the line that a mutant changes, and the changed line."""
    lines = [line for line in mutmut("show", mutant).splitlines() if line[:3] not in ("---", "+++")]
    before, after = ("".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return before, after


def main():
    """Print each mutant that is neither found nor explained, and each explanation of none; return 1 if there is one."""
    mutants = results()
    left = {change(name): f"{name}: {result}" for name, result in mutants.items() if result not in FOUND}
    complaints = [f"{left[pair]}\n- {pair[0]}\n+ {pair[1]}" for pair in left if pair not in EQUIVALENT]
    complaints += [
        f"a test finds this, or it is no mutant:\n- {one}\n+ {other}" for one, other in EQUIVALENT.keys() - left
    ]
    print(f"{len(mutants)} mutants, {len(mutants) - len(left)} found by a test, {len(left)} not", *complaints, sep="\n")
    return 1 if complaints or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
