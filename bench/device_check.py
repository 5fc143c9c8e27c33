"""The steps of device_check.sh, each with a time limit, and one report of all of them."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bench.cases import ALL_WIDTHS
from bench.report import as_json

_ROOT = Path(__file__).parent.parent
_NEEDED = ("cupy", "numpy", "array_api_compat")
_WANTED = ("pytest", "hypothesis", "array_api_strict", "ml_dtypes", "onnx", "onnxruntime", "torch", "matplotlib")
# Seconds; together under five minutes.
_LIMITS = {"tests": 150, "memcheck": 30, "racecheck": 30, "benchmark": 85}
_WIDTHS = [word for width in ALL_WIDTHS for word in ("--width", str(width))]
_BENCHMARK = ("-m", "bench", "--quick", "--mebibytes", "64", *_WIDTHS, "--device", "cuda", "--no-chart")
_FUZZ = ("tests/fuzz/on_device.py", "--count", "40")


def main(output: Path, work: Path, options: list[str]) -> int:
    """Run all steps and write the report; return 1 if one failed."""
    missing = [name for name in (*_NEEDED, *_WANTED) if importlib.util.find_spec(name) is None]
    lacking = [name for name in _NEEDED if name in missing]
    if lacking:
        print(f"device_check: cannot run without {', '.join(lacking)}", file=sys.stderr)
        return 2
    steps = {
        "tests": _tests(work),
        "memcheck": _sanitized("memcheck"),
        "racecheck": _sanitized("racecheck"),
        "benchmark": _step("benchmark", [*_BENCHMARK, "--output", str(work), *options]),
    }
    measured = next(iter(work.glob("cuda-*.json")), None)
    if measured is None:
        print(json.dumps(steps, indent=1), "device_check: no benchmark", sep="\n", file=sys.stderr)
        return 1
    result = {"missing": missing, "steps": steps} | json.loads(measured.read_text())
    output.mkdir(parents=True, exist_ok=True)
    stem = output / measured.stem.replace("cuda", "device")
    Path(f"{stem}.json").write_text(as_json(result))
    table = measured.with_suffix(".md").read_text()
    Path(f"{stem}.md").write_text(f"{table}\n## Checks\n\n{_summary(missing, steps)}\n")
    print(_summary(missing, steps))
    return int(any(step["code"] not in (0, None) for step in steps.values()))


def _step(name: str, arguments: list[str], command: tuple[str, ...] = ()) -> dict[str, Any]:
    """Run Python within the step's limit; code None means that it was not run, 124 that it took too long."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, sys.executable, *arguments],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=_LIMITS[name],
            check=False,
        )
        code, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        code, text = 124, f"stopped after {error.timeout} s"
    seconds = round(time.perf_counter() - began, 1)
    return {"code": code, "seconds": seconds, "tail": text.strip()[-2000:]}


def _tests(work: Path) -> dict[str, Any]:
    if importlib.util.find_spec("pytest") is None:
        return {"code": None, "seconds": 0, "tail": "pytest is not installed"}
    report = work / "tests.xml"
    options = ["--continue-on-collection-errors", "-p", "no:cacheprovider", f"--junitxml={report}"]
    step = _step("tests", ["-m", "pytest", "-m", "gpu", "-q", *options])
    if report.exists():
        suite = ElementTree.parse(report).getroot().find("testsuite")
        step["counts"] = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    return step


def _sanitized(tool: str) -> dict[str, Any]:
    found = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if found is None:
        return {"code": None, "seconds": 0, "tail": "compute-sanitizer is not installed"}
    # CuPy's pool would hide a write past an array's end, in another array of the same block.
    return _step(tool, [*_FUZZ, "--no-pool"], (found, "--tool", tool, "--error-exitcode", "9"))


def _summary(missing: list[str], steps: dict[str, dict[str, Any]]) -> str:
    lines = []
    for name, step in steps.items():
        what = {0: "passed", None: "not run"}.get(step["code"], f"failed ({step['code']})")
        detail = step.get("counts") or ("" if step["code"] == 0 else step["tail"].splitlines()[-1:])
        lines.append(f"- {name}: {what}, {step['seconds']} s {detail or ''}".rstrip())
    lines.append(f"- packages that are not installed: {', '.join(missing) or 'none'}")
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
