"""`make attack MINUTES=30`: rounds of the tests in this folder, each from a new seed, until the time is over."""

import argparse
import itertools
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    """Run rounds; return how many of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="for how long; a round that began is ended")
    parser.add_argument("--scale", type=float, default=5.0, help="cases of a round, as --attack-scale of pytest")
    parser.add_argument(
        "--seed", type=int, help="seed of the first round, which is printed; that of the next is 1 more"
    )
    options, others = parser.parse_known_args()
    first = secrets.randbelow(10**9) if options.seed is None else options.seed
    counts: Counter[str] = Counter()
    failed: list[int] = []
    end = time.monotonic() + 60 * options.minutes
    for seed in itertools.count(first):
        print(f"--- round from seed {seed}", flush=True)
        if not _round(seed, options.scale, others, counts):
            failed.append(seed)
        if time.monotonic() > end:
            break
    print("--- all rounds:", ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), flush=True)
    for seed in failed:
        print(f"failed: python -m pytest {FOLDER} --all --attack-scale {options.scale} --attack-seed {seed}")
    return len(failed)


def _round(seed: int, scale: float, others: list[str], counts: Counter[str]) -> bool:
    """Run the tests from a seed, add to the counts of cases, and return whether all passed."""
    options = ["-q", "--all", f"--attack-scale={scale}", f"--attack-seed={seed}"]
    command = [sys.executable, "-m", "pytest", str(FOLDER), *options]
    with subprocess.Popen([*command, *others], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            if line.startswith("attack: "):
                counts.update({what: int(n) for n, what in re.findall(r"(\d+) ([^,;]+)", line.partition("; seed")[0])})
    return running.returncode == 0


if __name__ == "__main__":
    sys.exit(min(main(), 1))
