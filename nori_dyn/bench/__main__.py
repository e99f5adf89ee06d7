"""`python -m nori_dyn.bench` is `nori-dyn bench`."""

from __future__ import annotations

import sys

from nori_dyn.cli import main

if __name__ == "__main__":
    sys.argv[:1] = ["nori-dyn", "bench"]
    main()
