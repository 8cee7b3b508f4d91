#!/usr/bin/env bash
# Runs TVM's own tests of RPC with `tvmspec serve`, `tracker` and `proxy` instead of TVM's, and with the real ones.
#
#   conformance/suites/rpc.sh FOLDER [RELEASE...]
#
#   0.27   the tests of 0.26.0, the newest tag that has them, with the Python of TVMSPEC_PYTHON
#   0.16   the tests of 0.16.0 with the Python of TVMSPEC_PYTHON_0_16
#   judge  the suite against a server of ours, of 0.27, of 0.16 and of 0.8 (TVMSPEC_PYTHON_0_8), and against three of 0.27 at
#          TVM's own tracker, one of which is killed during the run; and TVM's tracker and proxy on the cases of `rpc.relay`
#
# Without an argument it runs all. TVMSPEC_TVM names a clone of apache/tvm, for the tests at their tags. TVMSPEC_OWN is the program tvmspec; without it,
# it is built. Missing things are named, and their part is skipped. Outcomes, logs and the reports of the servers stay in FOLDER.
# conformance/suites/clients/rpc_shim.py replaces TVM's servers; conformance/reports/rpc-pairings.md has the results.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:?a folder to work in}"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- 0.27 0.16 judge
own=${TVMSPEC_OWN:-}
if [ -z "$own" ]; then
    (cd "$here" && cargo build -q --all-features --bin tvmspec)
    own=${CARGO_TARGET_DIR:-$here/target}/debug/tvmspec
fi
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# A host and a port. Other lines may come before: TVM 0.8 prints the library that it loads.
addressed='[0-9.]\+:[0-9]\+\b'

# Ends the process that `started` has started, with all its children.
groups=()
trap 'for group in "${groups[@]}"; do kill -9 -- "-$group" 2>/dev/null || true; done' EXIT

# started LOG COMMAND...: runs it in a separate process group, and waits for the line of its log that has an address.
started() {
    local log=$1
    shift
    : >"$log"
    setsid "$@" >"$log" 2>&1 &
    groups+=($!)
    for _ in $(seq 600); do
        grep -q "$addressed" "$log" && return
        sleep 0.1
    done
    echo "$1 does not start: $log"
    exit 1
}

# checked NAME IMPLEMENTATION OPTION...: runs the suite against it, and prints the counts.
checked() {
    local name=$1 implementation=$2
    shift 2
    "$own" check --impl "$implementation" --timeout 5 --max-hangs 0 --max-crashes 0 --report json -o "$work/judge-$name.json" \
        --chapter rpc --chapter value --chapter function --chapter module --chapter device \
        --known "$here/conformance/known/apache-tvm-rpc-0.8-0.27.toml" "$@" 2>"$work/judge-$name.log" || true
    python3 - "$name" "$work/judge-$name.json" <<'PYTHON'
import collections, json, sys

report = json.load(open(sys.argv[2]))
count = collections.Counter(result["verdict"] + (" (known)" if result.get("known") else "") for result in report["results"])
print(f"{sys.argv[1]}:", ", ".join(f"{number} {verdict}" for verdict, number in sorted(count.items())))
for result in report["results"]:
    if result["verdict"] not in ("pass", "unsupported", "skipped") and not result.get("known"):
        print("   ", result["case"], result["verdict"], str(result.get("reason"))[:160])
PYTHON
}

# The address that a server prints.
address() { grep -o "$addressed" "$1" | head -n 1; }

judge() {
    local testee=$here/conformance/testee/python/rpc_server.py release variable python
    for release in 0.27 0.16 0.8; do
        started "$work/judge-ours-$release.server" "$own" serve --port 0 --release "$release" --suite-functions --allow-load
        checked "ours-$release" "rpc:$(address "$work/judge-ours-$release.server")@$release"
    done
    for release in 0.27 0.16 0.8; do
        variable=TVMSPEC_PYTHON_${release//./_}
        [ "$release" != 0.27 ] || variable=TVMSPEC_PYTHON
        python=${!variable:-}
        if ! "${python:-false}" -c 'import tvm.rpc.server' 2>/dev/null; then
            echo "judge $release: skipped, because $variable names no Python with TVM $release"
            continue
        fi
        started "$work/judge-tvm-$release.server" "$python" -u "$testee" 0
        checked "tvm-$release" "rpc:$(address "$work/judge-tvm-$release.server")@$release"
    done
    python=${TVMSPEC_PYTHON:-}
    "${python:-false}" -c 'import tvm.rpc.server' 2>/dev/null || return 0
    started "$work/judge-tracker.log" "$python" -m tvm.exec.rpc_tracker --host 127.0.0.1 --port 9190 --port-end 9399
    local tracker=127.0.0.1:$(sed -n 's/.*bind to [^:]*:\([0-9]*\).*/\1/p' "$work/judge-tracker.log")
    local number
    for number in 1 2 3; do
        started "$work/judge-farm-$number.server" "$python" -u "$testee" 0 "$tracker" board
    done
    local killed=${groups[-1]}
    (
        sleep "${TVMSPEC_KILL_AFTER:-10}"
        kill -9 -- "-$killed"
    ) &
    checked "farm" "rpc-tracker:$tracker/board@0.27" --jobs 3
    wait $! || true
    # A tracker or a proxy for each case, in a process that imports TVM.
    "$own" check --case 'rpc/relay/*' --timeout 60 --impl "exec:$python $here/conformance/testee/python/rpc_relay.py" \
        --known "$here/conformance/known/apache-tvm-relay-0.27.toml" >"$work/judge-relay.log" || true
    echo "tracker and proxy: $(tail -n 1 "$work/judge-relay.log")"
}
for release in "$@"; do
    case $release in
    judge)
        judge
        continue
        ;;
    0.27) variable=TVMSPEC_PYTHON tag=v0.26.0 ;;
    0.16) variable=TVMSPEC_PYTHON_0_16 tag=v0.16.0 ;;
    *)
        echo "no tests of $release"
        exit 2
        ;;
    esac
    if [ -z "${TVMSPEC_TVM:-}" ]; then
        echo "$release: skipped, because TVMSPEC_TVM names no clone of apache/tvm"
        continue
    fi
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
        # A path of this project before the package's own, to which a wrapper of the command may add.
        PYTHONPATH="$here/conformance/suites/clients${PYTHONPATH:+:$PYTHONPATH}" TVMSPEC_OWN=$program TVMSPEC_LOG="$work/$release-servers.log" \
            "$python" "$here/conformance/suites/clients/run_tests.py" rpc_shim,tvm.testing "$work/$release-$side.txt" \
            "$work/$release-$side.log" runtime/test_runtime_rpc.py >/dev/null
        echo "$release $side: $(sed 's/.* //' "$work/$release-$side.txt" | sort | uniq -c | tr -s ' \n' ' ')"
    done
    diff "$work/$release-real.txt" "$work/$release-own.txt" | sed -n 's/^[<>]/ &/p' || true
done
