"""`python -m nori_dyn` is `nori-dyn`."""

from nori_dyn.cli import main

main()
