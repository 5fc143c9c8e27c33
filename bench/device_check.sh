#!/usr/bin/env bash
# Everything that is worth knowing of a machine with a GPU, in at most 8 minutes, in files of one folder. It needs no
# network. docs/benchmarks.md describes the steps, the files and the options.
# Usage: bench/device_check.sh --output FOLDER [--wheels FOLDER] [--python PYTHON] [--minutes N] [--mebibytes N]
set -euo pipefail
cd "$(dirname "$0")/.."
python=python3 arguments=()
while (($#)); do
  case $1 in
    --python) python=$2 && shift 2 ;;
    *) arguments+=("$1") && shift ;;
  esac
done
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -m bench.device_check "${arguments[@]}"
