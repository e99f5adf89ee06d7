#!/usr/bin/env bash
# Set up everything that `make demo`, `make test`, `make mutants` or `make docs` needs.
# Usage: .ci/setup.sh demo|dev|quick|docs|mutants
# Run it from the repository root; every step that is already done is skipped.
set -euo pipefail

extra=$1
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
PACKAGES="build-essential python3-dev python3-venv"
case $extra in quick | docs) umfpack= ;; *) umfpack=wanted ;; esac
[ -z "$umfpack" ] || PACKAGES="$PACKAGES pkg-config swig libopenblas-dev libsuitesparse-dev"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { echo "set-up: $*"; }
warn() { echo "set-up: WARNING: $*" >&2; }
fail() { echo "set-up: ERROR: $*" >&2; exit 1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

install_system_packages() {
    if ! command -v apt-get >/dev/null; then
        say "no apt-get here: system packages are left to you ($PACKAGES, or what they are called here)"
        return
    fi
    local missing=() package
    for package in $PACKAGES; do
        dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    say "installing system packages: ${missing[*]}"
    as_root apt-get update -qq \
        && as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null \
        || warn "apt-get could not install: ${missing[*]}; going on without"
}

make_environment() {
    if is_recent "$VENV/bin/python" && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then return; fi
    is_recent "$PYTHON" || fail "$PYTHON is missing or older than 3.11; name another: make PYTHON=python3.12 ..."
    say "creating $VENV with $("$PYTHON" --version)"
    "$PYTHON" -m venv --clear "$VENV"
}

# A build against the wrong SuiteSparse can import and then fail: factor a matrix to know.
umfpack_works() {
    "$VENV/bin/python" - >/dev/null 2>&1 <<'PYTHON'
import numpy, scipy.sparse, scikits.umfpack
A = scipy.sparse.csc_matrix([[4.0, 1.0], [2.0, 3.0]])
assert numpy.allclose(A @ scikits.umfpack.splu(A).solve(numpy.ones(2)), 1.0)
PYTHON
}

install_umfpack() {
    if umfpack_works; then return; fi
    local log="$VENV/umfpack-build.log"
    say "installing scikit-umfpack (built from source)"
    if "$VENV/bin/python" -m pip install --build-constraint .ci/build-constraints.txt scikit-umfpack==0.4.2 \
        >"$log" 2>&1 && umfpack_works; then return; fi
    "$VENV/bin/python" -m pip uninstall -q -y scikit-umfpack >/dev/null 2>&1 || true
    warn "scikit-umfpack could not be built (see $log); going on without it: other orderings and SuperLU serve." \
        "To try again: rm -r $VENV"
}

# A Python that is too old is known before anything is installed; one that is missing may come with apt.
if command -v "$PYTHON" >/dev/null && ! is_recent "$PYTHON"; then
    fail "$PYTHON is older than 3.11 ($("$PYTHON" --version 2>&1)); name another: make PYTHON=python3.12 ..."
fi
install_system_packages
make_environment
say "installing pip 25.3 or newer"
"$VENV/bin/python" -m pip install -q --upgrade "pip>=25.3"
say "installing nori_dyn[$extra] and its dependencies"
"$VENV/bin/python" -m pip install -q --editable ".[$extra]"
[ -z "$umfpack" ] || install_umfpack
touch "$VENV/.ready-$extra"
if [ "$extra" = dev ]; then touch "$VENV"/.ready-{demo,docs,quick}; fi # dev holds all that the others need
