"""Benchmarks that users can run: every figure beside a reference measured in the same run."""
