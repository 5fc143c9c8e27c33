"""Compile every instantiation of the CUDA kernels by NVRTC and check the machine code. No GPU is needed.

python tests/compile_check/check.py [--quick] [--arch sm_90 ...] [--kind rows ...] [--variant 3 ...] [--output FILE]
                                    [--results FILE]

The exit code is 1 if an instantiation does not compile, uses the stack, spills registers, needs too many of them, lacks
the 128-bit accesses that its kernel promises, or has too few bytes in flight.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from compiled import Compiled, compiled, keys

from gpuslice.engine.plan.kernel_sources import digest

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
OLDER = {"13.0": ("sm_90", "sm_120"), "12.9": ("sm_90",)}  # for which architectures older versions of CUDA are tried
PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvdisasm")


def main() -> int:
    """Compile, print a table, and list what is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", nargs="+", metavar="sm_90", help=f"by default {' '.join(ARCHITECTURES)}")
    parser.add_argument("--quick", action="store_true", help="a few, for the oldest and the newest architecture")
    parser.add_argument("--kind", nargs="+", metavar="rows", help="only these kernels")
    parser.add_argument("--variant", nargs="+", type=int, metavar="3", help="only these variants")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to a file")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="add each result to a file; what it has of these sources is done"
    )
    given = parser.parse_args()
    chosen = [
        key
        for key in keys(quick=given.quick)
        if (not given.kind or key[0] in given.kind) and (not given.variant or key[2] in given.variant)
    ]
    wanted = [(*job, key) for job in jobs_for(given.arch, given.quick) for key in chosen]
    done, began = {one.name: one for one in read_results(given.results)}, time.monotonic()
    for some in compiled([name for name in wanted if name not in done], os.cpu_count() or 1):
        done |= {one.name: one for one in some}
        add_results(given.results, some)
        progress = f"{len(done.keys() & wanted)} of {len(wanted)}, CUDA {some[-1].cuda}, {some[-1].arch}"
        print(f"{progress}, {time.monotonic() - began:.0f} s", file=sys.stderr)
    results = [done[name] for name in wanted]
    text = table(results)
    print(text)
    if given.output:
        given.output.write_text(f"{text}\n")
    return report(results)


def read_results(file: Path | None) -> list[Compiled]:
    """Return the results in a file that are of these sources."""
    rows = map(json.loads, file.read_text().splitlines()) if file is not None and file.exists() else ()
    return [Compiled(**row) for row in rows if row.pop("sources") == digest()]


def add_results(file: Path | None, results: Sequence[Compiled]) -> None:
    """Add results to a file, so that a run that was stopped can go on, and several runs make one table."""
    if file is not None:
        with file.open("a") as lines:
            lines.writelines(json.dumps({"sources": digest(), **asdict(one)}) + "\n" for one in results)


def jobs_for(architectures: list[str] | None, quick: bool) -> list[tuple[str, str]]:
    """Return versions of CUDA with architectures."""
    newest = architectures or (ARCHITECTURES[:: len(ARCHITECTURES) - 1] if quick else ARCHITECTURES)
    older = [(cuda, arch) for cuda, some in OLDER.items() for arch in architectures or ARCHITECTURES if arch in some]
    return [("13.2", arch) for arch in newest] + older


def table(results: Sequence[Compiled]) -> str:
    """Return Markdown tables of architectures, of kernels and of bytes in flight."""
    tools = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    about = (
        f"{time.strftime('%Y-%m-%d')}, sources {digest()}, {tools}. Facts about compiled code: nothing ran on a GPU."
    )
    return "\n".join(
        [
            "# Compiled CUDA kernels",
            "",
            about,
            "",
            *_architectures(results),
            "",
            *_kernels(results),
            "",
            *_flights(results),
        ]
    )


def _architectures(results: Sequence[Compiled]) -> Iterator[str]:
    yield "| CUDA | architecture | instantiations | broken | most registers |"
    yield "|---|---|---:|---:|---:|"
    for (cuda, arch), group in _grouped(results, lambda one: (one.cuda, one.arch)).items():
        broken = sum(one.broken() is not None for one in group)
        yield f"| {cuda} | {arch} | {len(group)} | {broken} | {_most(group)} |"


def _kernels(results: Sequence[Compiled]) -> Iterator[str]:
    yield "| kernel | most registers, 32-bit index | 64-bit index | widest loads, bits | widest stores |"
    yield "|---|---:|---:|---:|---:|"
    for (kind, width, variant), group in _grouped(results, lambda one: (one.kind, one.width, one.variant)).items():
        cells = [_most([one for one in group if one.index_bits == bits]) for bits in (32, 64)]
        cells += [min((one.load_bits for one in group if one.load_bits is not None), default="-")]
        cells += [min((one.store_bits for one in group if one.store_bits is not None), default="-")]
        yield f"| {kind}<{width}, {variant}> | " + " | ".join(map(str, cells)) + " |"


def _flights(results: Sequence[Compiled]) -> Iterator[str]:
    """Yield a table of the fewest bytes in flight of each kernel on each architecture."""
    columns = _grouped(results, lambda one: one.arch)
    yield "Bytes that a thread loads before it waits for the first, from aligned / misaligned sources:"
    yield ""
    yield f"| kernel | {' | '.join(columns)} |"
    yield "|---" * (1 + len(columns)) + "|"
    for (kind, width, variant), group in _grouped(results, lambda one: (one.kind, one.width, one.variant)).items():
        by_arch = _grouped(group, lambda one: one.arch)
        yield f"| {kind}<{width}, {variant}> | " + " | ".join(_flight(by_arch.get(arch, [])) for arch in columns) + " |"


def _flight(group: Sequence[Compiled]) -> str:
    found = [(one.aligned, one.misaligned or 0) for one in group if one.aligned is not None]
    aligned, misaligned = (min(sizes) for sizes in zip(*found, strict=True)) if found else ("-", 0)
    return f"{aligned} / {misaligned or '-'}"


def _grouped(results: Sequence[Compiled], key: Callable[[Compiled], Any]) -> dict[Any, list[Compiled]]:
    groups: dict[Any, list[Compiled]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups


def _most(group: Sequence[Compiled]) -> int | str:
    return max((one.registers for one in group if one.registers is not None), default="-")


def report(results: Sequence[Compiled]) -> int:
    """Print what is broken; return the exit code."""
    broken = [(one, why) for one in results if (why := one.broken()) is not None]
    for one, why in broken:
        name = f"{one.kind}<{one.index_bits} bits, {one.capacity}, {one.width}, {one.variant}>"
        print(f"CUDA {one.cuda}, {one.arch}, {name}: {why}", file=sys.stderr)
    print(f"{len(results)} instantiations, {len(broken)} broken", file=sys.stderr)
    return 1 if broken or not results else 0


if __name__ == "__main__":
    sys.exit(main())
