"""Damaged files of every kind: each is an answer or an error of ours, and none of them runs code or leaves a mess."""

import base64
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import nori_dyn as nd
from tests.attack.mutations import CANARY, SECRET, SECRET_FILE
from tests.attack.targets import TARGETS

pytestmark = pytest.mark.usefixtures("own_cache")

ROOT = Path(__file__).parents[2]

FILES, LEAST = 1000, 3
"""Files at scale 1; files of each kind at least, as the first is the simplest damage: an empty file, say."""

CPU = 60
"""Seconds of the processor after which a file hangs what reads it."""

MEMORY = 3 * 2**30
"""Bytes beyond those of the process that no file may need."""

SCRIPT = '''"""Found by the attack on files: {problem}.

Run it in the repository's root: python {name}
"""

import base64, os, sys, tempfile, warnings
from pathlib import Path

sys.path.insert(0, ".")
warnings.simplefilter("error")
from nori_dyn.errors import NoriError, NoriWarning
from tests.attack.targets import TARGETS

warnings.simplefilter("ignore", NoriWarning)
content = base64.b64decode({content!r})
with tempfile.TemporaryDirectory() as folder:
    os.environ["NORI_DYN_CACHE"] = folder + "/cache"
    path = Path(folder) / "file{ending}"
    path.write_bytes(content)
    try:
        print(TARGETS[{target!r}].use(path))
    except NoriError as error:
        print("refused:", error)
'''


class HangError(BaseException):
    """A file that keeps the processor busy for ever."""


@contextmanager
def limits():
    """Let what needs too much time or memory fail."""

    def hang(*_):
        raise HangError

    before = signal.signal(signal.SIGVTALRM, hang), resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1][1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before[0])
        resource.setrlimit(resource.RLIMIT_AS, before[1])


def outcome(target, path):
    """One of "answered" and "refused".

    Raises:
        AssertionError: code was run, or what a file must not reach came out of it.
        Exception: whatever is not an error of ours.
    """
    try:
        with limits(), warnings.catch_warnings():
            warnings.simplefilter("ignore", nd.errors.NoriWarning)
            shown, answer = repr(target.use(path)), "answered"
    except nd.errors.NoriError as error:
        shown, answer = str(error), "refused"
    assert shown.strip()
    assert SECRET not in shown
    assert not CANARY.exists(), "code was run"
    return answer


def script(folder, name, content, error):
    """Write a script that does it again, and return its path."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    problem = f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}, from a file of the kind '{name}'"
    path = folder / f"{name}-{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}.py".replace(" ", "_")
    encoded = base64.b64encode(content).decode()
    target = TARGETS[name]
    path.write_text(SCRIPT.format(problem=problem, name=path.name, content=encoded, ending=target.ending, target=name))
    return path


@pytest.fixture(autouse=True)
def secret():
    SECRET_FILE.write_text(SECRET)
    CANARY.unlink(missing_ok=True)
    yield
    SECRET_FILE.unlink(missing_ok=True)
    CANARY.unlink(missing_ok=True)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_answered_or_refused(name, attack_scale, attack_seed, attacked, attack_scripts, tmp_path):
    target, outcomes, scripts = TARGETS[name], Counter(), set()
    path = tmp_path / f"file{target.ending}"

    @seed(attack_seed)
    @settings(
        max_examples=max(LEAST, round(attack_scale * FILES * target.share / 1000)),
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.composite(target.damage)())
    def attack(content):
        path.write_bytes(content)
        try:
            outcomes[outcome(target, path)] += 1
        except BaseException as error:
            scripts.add(script(attack_scripts, name, content, error))
            CANARY.unlink(missing_ok=True)
            raise

    try:
        attack()
    finally:
        attacked("files", outcomes.total())
        print(dict(outcomes), *(f"\nagain with: python {path}" for path in scripts))
    assert outcomes.total()


def test_a_failure_is_a_script_that_does_it_again(tmp_path):
    try:
        raise KeyError("x")
    except KeyError as error:
        path = script(tmp_path, "urdf", b"<robot/>", error)
    assert path.name.startswith("urdf-KeyError-test_files-")
    done = subprocess.run([sys.executable, path], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "refused: " in done.stdout
    assert "has no links" in done.stdout
