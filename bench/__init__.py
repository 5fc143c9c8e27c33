"""Benchmarks: ``python -m bench`` times the library beside its peers; see README.md."""
