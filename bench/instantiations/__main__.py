"""``python -m bench.instantiations``: exit code 1 where an instantiation is not what it should be."""

import argparse
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from bench.instantiations.compiled import PACKAGES, Compiled, Key, compiled
from bench.instantiations.nvrtc import KERNELS
from bench.instantiations.table import write_json, write_markdown
from gpuslice.engine.plan import all_instantiations

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
WITH_CUDA_12 = ("sm_90",)


def chosen(quick: bool) -> list[Key]:
    """Give what to compile: all, or one of each kind, width and index, with the largest table and the last variant."""
    keys = list(all_instantiations())
    return list({(key[0], key[1], key[3]): key for key in keys}.values()) if quick else keys


def jobs_for(architectures: list[str] | None, quick: bool) -> list[tuple[str, str]]:
    """Give major versions of CUDA with architectures."""
    with_13 = architectures or (ARCHITECTURES[:: len(ARCHITECTURES) - 1] if quick else ARCHITECTURES)
    with_12 = [arch for arch in architectures or ARCHITECTURES if arch in WITH_CUDA_12]
    return [("13", arch) for arch in with_13] + [("12", arch) for arch in with_12]


def about(jobs: list[tuple[str, str]]) -> dict[str, object]:
    """Say when, from which commit and by what; ptxas is a part of NVRTC."""
    packages = [*dict.fromkeys(PACKAGES[cuda] for cuda, _ in jobs), "nvidia-cuda-nvdisasm"]
    described = ["git", "-C", str(KERNELS), "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(described, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return {"date": time.strftime("%Y-%m-%d"), "commit": commit, "versions": {name: version(name) for name in packages}}


def main() -> int:
    """Compile, check, and write where asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench.instantiations")
    parser.add_argument("--arch", nargs="+", metavar="sm_90", help=f"by default {' '.join(ARCHITECTURES)}")
    parser.add_argument("--quick", action="store_true", help="a few, on the oldest and the newest architecture")
    parser.add_argument("--kind", nargs="+", metavar="rows", help="only these kernels")
    parser.add_argument("--variant", nargs="+", type=int, metavar="3", help="only these variants")
    parser.add_argument("--name", default="instantiations", help="of the files, which end in the date")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write; else the summary is shown")
    given = parser.parse_args()
    jobs, keys, began = jobs_for(given.arch, given.quick), chosen(given.quick), time.monotonic()
    keys = [
        key
        for key in keys
        if (not given.kind or key[0] in given.kind) and (not given.variant or key[2] in given.variant)
    ]
    known, results, total = about(jobs), [], len(jobs) * len(keys)
    for some in compiled(jobs, keys, os.cpu_count() or 1):
        results += some
        seconds = time.monotonic() - began
        print(f"{len(results)} of {total}, CUDA {some[-1].cuda}, {some[-1].arch}, {seconds:.0f} s", file=sys.stderr)
    if given.output:
        path = given.output / f"{given.name}-{known['date']}"
        path.with_suffix(".json").write_text(write_json(results, known))
        path.with_suffix(".md").write_text(write_markdown(results, known))
    else:
        print(write_markdown(results, known))
    return report(results)


def report(results: list[Compiled]) -> int:
    """List what is broken."""
    broken = [(one, why) for one in results if (why := one.broken()) is not None]
    for one, why in broken:
        name = f"{one.kind}<{one.index_bits} bits, {one.capacity}, {one.width}, {one.variant}>"
        print(f"CUDA {one.cuda}, {one.arch}, {name}: {why}", file=sys.stderr)
    print(f"{len(results)} instantiations, {len(broken)} broken", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
