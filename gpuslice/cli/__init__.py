"""The command line; see `gpuslice.cli.main`."""

from gpuslice.cli.main import main

__all__ = ["main"]
