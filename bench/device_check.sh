#!/usr/bin/env bash
# The checks for a machine with a GPU: the gpu tests, compute-sanitizer over a small fuzz, a quick benchmark. Takes under
# five minutes and writes one JSON and one Markdown file. Needs no network: it says which packages are missing.
# Usage: bench/device_check.sh [--output FOLDER] [--wheels FOLDER] [--python PYTHON] [-- OPTIONS OF THE BENCHMARK]
set -euo pipefail
cd "$(dirname "$0")/.."
output=bench/results wheels="" python=python3
while (($#)); do
  case $1 in
    --output) output=$2 ;;
    --wheels) wheels=$2 ;;
    --python) python=$2 ;;
    --) shift && break ;;
    *) echo "device_check.sh: unknown argument $1" >&2 && exit 2 ;;
  esac
  shift 2
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for wheel in ${wheels:+"$wheels"/*.whl}; do
  "$python" -m zipfile -e "$wheel" "$work/packages"
done
export PYTHONPATH="$PWD:$work/packages${PYTHONPATH:+:$PYTHONPATH}"
"$python" -m bench.device_check "$output" "$work" "$@"
