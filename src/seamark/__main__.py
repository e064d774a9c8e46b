"""`python -m seamark` is `seamark`."""

from __future__ import annotations

from seamark.cli.main import main

if __name__ == "__main__":
    main()
