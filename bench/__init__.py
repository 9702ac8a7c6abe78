"""Benchmarks: ``python -m bench [NAME ...]``, results in ``bench/results.json``."""
