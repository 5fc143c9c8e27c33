"""``python -m gpuslice``: the command line."""

from _gpuslice_command import main

raise SystemExit(main())
