"""``python -m gpuslice``: the command line."""

from gpuslice.cli import main

raise SystemExit(main())
