#!/usr/bin/env bash
# TVM's own tests of RPC with `tvmspec serve`, `tracker` and `proxy` in the place of its own, beside the real ones.
#
#   conformance/suites/rpc.sh FOLDER [RELEASE...]
#
#   0.27   the tests of 0.26.0, the newest tag that has them, with the Python of TVMSPEC_PYTHON
#   0.16   the tests of 0.16.0 with the Python of TVMSPEC_PYTHON_0_16
#
# Both without an argument. TVMSPEC_TVM names a clone of apache/tvm, for the tests at their tags. TVMSPEC_OWN is the program tvmspec; it is
# built otherwise. What is missing is named, and its part is skipped. Outcomes, logs and what the servers report stay in FOLDER.
# conformance/suites/clients/rpc_shim.py is what takes the places; conformance/reports/rpc-pairings.md has the results.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:?a folder to work in}"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- 0.27 0.16
if [ -z "${TVMSPEC_TVM:-}" ]; then
    echo "skipped, because TVMSPEC_TVM names no clone of apache/tvm"
    exit 0
fi
own=${TVMSPEC_OWN:-}
if [ -z "$own" ]; then
    (cd "$here" && cargo build -q --all-features --bin tvmspec)
    own=${CARGO_TARGET_DIR:-$here/target}/debug/tvmspec
fi
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
for release in "$@"; do
    case $release in
    0.27) variable=TVMSPEC_PYTHON tag=v0.26.0 ;;
    0.16) variable=TVMSPEC_PYTHON_0_16 tag=v0.16.0 ;;
    *)
        echo "no tests of $release"
        exit 2
        ;;
    esac
    python=${!variable:-}
    if ! "${python:-false}" -c 'import tvm.testing, pytest' 2>/dev/null; then
        echo "$release: skipped, because $variable names no Python with TVM $release and pytest"
        continue
    fi
    rm -rf "$work/$release"
    mkdir -p "$work/$release"
    git -C "$TVMSPEC_TVM" archive "refs/tags/$tag" tests/python/runtime/test_runtime_rpc.py | tar x -C "$work/$release"
    cd "$work/$release/tests/python"
    for side in real own; do
        program=
        [ "$side" = real ] || program=$own
        # A path of this project in front of the package's own, which a wrapper of the command may add to.
        PYTHONPATH="$here/conformance/suites/clients${PYTHONPATH:+:$PYTHONPATH}" TVMSPEC_OWN=$program TVMSPEC_LOG="$work/$release-servers.log" \
            "$python" "$here/conformance/suites/clients/run_tests.py" rpc_shim,tvm.testing "$work/$release-$side.txt" \
            "$work/$release-$side.log" runtime/test_runtime_rpc.py >/dev/null
        echo "$release $side: $(sed 's/.* //' "$work/$release-$side.txt" | sort | uniq -c | tr -s ' \n' ' ')"
    done
    diff "$work/$release-real.txt" "$work/$release-own.txt" | sed -n 's/^[<>]/ &/p' || true
done
