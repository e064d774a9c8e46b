"""Failures inside the shipped contract are explained like failures in a test."""

from __future__ import annotations

import pytest

for name in ("contract", "reading"):
    pytest.register_assert_rewrite(f"seamark.testing.{name}")
