#!/usr/bin/env bash
# Real clients of tvm-ffi on the library of their wheel and on this one, test by test: TVM's own tests, orcjit, tilelang.
#
#   conformance/suites/tvm.sh FOLDER [CLIENT...]
#
#   0.26      tests of TVM 0.26.0 with tvm-ffi 0.1.14.post1: ir, te, driver, runtime
#   0.27      the same tests with apache-tvm 0.27.0.post1 and tvm-ffi 0.1.15.post2, whose wheels crash together
#   0.25      IR that is saved with TVM 0.25.0.post1 and tvm-ffi 0.1.12
#   releases  the Python of every release of tvm-ffi: values, containers, functions, errors, tensors
#   orcjit    what apache-tvm-ffi-orcjit does: load an object file, import, clear
#   tilelang  import tilelang 0.1.15
#   brief     three files of 0.26 and IR saved with a constant: what the gate runs
#
# All but `brief` without an argument. Everything is made in FOLDER and kept there. TVMSPEC_TVM names a bare clone of apache/tvm, for
# the tests at their tags; what needs it says `skipped, because` without. TESTS overrides the folders and files below tests/python,
# TVMSPEC_OWN the library that is put in the wheel's place (built here otherwise, with TVMSPEC_PROFILE, release if not said). A test that ends its process is counted as a crash of
# its file, whose other tests are then asked one by one. conformance/reports/clients.md has the results.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:?a folder to work in}"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- releases 0.25 0.26 0.27 orcjit tilelang
failed=0
base=$PATH

own=${TVMSPEC_OWN:-}
if [ -z "$own" ]; then
    profile=${TVMSPEC_PROFILE:-release}
    (cd "$here" && cargo rustc -q --profile "$profile" --lib --crate-type cdylib --no-default-features --features runtime,cxx \
        --target-dir "$work/target" -- -C link-arg=-Wl,-soname,libtvm_ffi.so)
    [ "$profile" != dev ] || profile=debug
    own="$work/target/$profile/libtvmspec.so"
fi

# A virtual environment with the packages, and beside it the folder `own` whose tvm_ffi has this library: it stands in front in
# PYTHONPATH, and nothing in the environment changes.
environment() {
    local name=$1
    shift
    venv="$work/$name"
    if [ ! -f "$venv/ready" ]; then
        python3 -m venv "$venv"
        "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@"
        touch "$venv/ready"
    fi
    python="$venv/bin/python"
    export PATH="$venv/bin:$base"
    local packages
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    rm -rf "$venv/own"
    mkdir -p "$venv/own"
    cp -r "$packages/tvm_ffi" "$packages"/apache_tvm_ffi-*.dist-info "$venv/own/"
    cp "$own" "$venv/own/tvm_ffi/lib/libtvm_ffi.so"
}

# on wheel|own COMMAND...
on() {
    local library=$1
    shift
    if [ "$library" = own ]; then PYTHONPATH="$venv/own" "$@"; else "$@"; fi
}

# Each test with its outcome, a line each. A skipped one has only its place.
outcomes() {
    sed -nE -e '/^(FAILED|ERROR) /s/ - .*//' -e '/^SKIPPED /s/^SKIPPED \[[0-9]+\] ([^ ]+): .*/SKIPPED \1/' \
        -e 's/^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (.*)/\2 \1/p' "$1" | sort -u
}

# run wheel|own FILE LOG: one file in one process; after a crash its tests one by one.
run() {
    local library=$1 file=$2 log=$3 status=0 names name
    on "$library" timeout -k 5 600 "$python" -m pytest -q -o addopts= -p no:cacheprovider -rA --tb=no "$file" >"$log.raw" 2>&1 || status=$?
    if [ "$status" -lt 124 ]; then
        outcomes "$log.raw" >>"$log"
        return
    fi
    names=$(on "$library" timeout 120 "$python" -m pytest -q -o addopts= -p no:cacheprovider --collect-only "$file" 2>/dev/null | grep '::' || true)
    [ -n "$names" ] || echo "$file CRASH" >>"$log"
    while read -r name; do
        [ -n "$name" ] || continue
        status=0
        on "$library" timeout -k 5 60 "$python" -m pytest -q -o addopts= -p no:cacheprovider -rA --tb=no "$name" >"$log.raw" 2>&1 || status=$?
        if [ "$status" -lt 124 ]; then outcomes "$log.raw" >>"$log"; else echo "$name CRASH-$status" >>"$log"; fi
    done <<<"$names"
}

# Both logs test by test: counts, then every difference.
compare() {
    local name=$1 wheel="$work/$1-wheel.txt" ours="$work/$1-own.txt"
    python3 - "$name" "$wheel" "$ours" <<'END' || failed=1
import collections, sys
name, *paths = sys.argv[1:]
both = [dict(line.rsplit(" ", 1) for line in open(path).read().splitlines()) for path in paths]
for title, outcomes in zip(("wheel", "own"), both):
    counts = collections.Counter(outcomes.values())
    print(f"{name} {title}: " + (", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing ran"))
tests = sorted(set(both[0]) | set(both[1]))


def rank(outcome):
    """Good, failed, or worse: a crash, a hang, a test that was never reached."""
    if outcome in ("PASSED", "SKIPPED", "XFAIL", "XPASS"):
        return 2
    return int(outcome in ("FAILED", "ERROR"))


worse = 0
for test in tests:
    wheel, own = (outcomes.get(test, "absent") for outcomes in both)
    if wheel != own:
        print(f"  {test}: wheel {wheel}, own {own}")
        worse += rank(own) < rank(wheel)
print(f"{name}: {len(tests)} tests, {worse} worse on this library than on the wheel")
sys.exit(1 if worse or "PASSED" not in both[1].values() else 0)
END
}

# tests NAME TAG PLACE...: files of TVM's tests.
tests() {
    local name=$1 tag=$2 file library
    shift 2
    if [ -z "${TVMSPEC_TVM:-}" ]; then
        echo "$name: skipped, because TVMSPEC_TVM names no bare clone of apache/tvm"
        return
    fi
    rm -rf "$work/tests-$name"
    mkdir -p "$work/tests-$name"
    git --git-dir="$TVMSPEC_TVM" archive "$tag" tests/python pyproject.toml | tar x -C "$work/tests-$name"
    : >"$work/$name-wheel.txt"
    : >"$work/$name-own.txt"
    cd "$work/tests-$name/tests/python"
    # The folders are words.
    # shellcheck disable=SC2086
    for file in $(find ${TESTS:-"$@"} -name 'test_*.py' | sort); do
        for library in wheel own; do run "$library" "$file" "$work/$name-$library.txt"; done
    done
    cd "$work"
    compare "$name"
}

# script NAME FILE: a script of this folder, whose lines `PASSED name` and `FAILED name` are the tests.
script() {
    local name=$1 file=$2 library status
    for library in wheel own; do
        status=0
        on "$library" timeout -k 5 120 "$python" "$file" >"$work/$name.raw" 2>"$work/$name-$library.err" || status=$?
        outcomes "$work/$name.raw" >"$work/$name-$library.txt"
        [ "$status" -eq 0 ] || echo "process EXIT-$status" >>"$work/$name-$library.txt"
    done
    compare "$name"
}

for client in "$@"; do
    case $client in
    0.26)
        environment tvm-0.26 apache-tvm==0.26.0 apache-tvm-ffi==0.1.14.post1 numpy pytest ml_dtypes
        script save-0.26 "$here/conformance/suites/clients/save_ir.py"
        tests 0.26 refs/tags/v0.26.0 ir te driver runtime
        ;;
    0.25)
        environment tvm-0.25 apache-tvm==0.25.0.post1 apache-tvm-ffi==0.1.12 numpy
        script save-0.25 "$here/conformance/suites/clients/save_ir.py"
        ;;
    0.27)
        # 0.26.0 is the newest tag with tests.
        environment tvm-0.27 apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.15.post2 numpy pytest ml_dtypes
        script save-0.27 "$here/conformance/suites/clients/save_ir.py"
        tests 0.27 refs/tags/v0.26.0 ir te driver runtime
        ;;
    releases)
        # 0.1.0 is left out: its test library needs a newer libstdc++ than Debian 12 has.
        for release in 0.1.2 0.1.4 0.1.6 0.1.7 0.1.8.post2 0.1.9 0.1.10 0.1.11 0.1.12 0.1.13.post3 0.1.14.post1 0.1.15.post2; do
            environment "ffi-$release" "apache-tvm-ffi==$release" numpy
            script "ffi-$release" "$here/conformance/suites/clients/use_tvm_ffi.py"
        done
        ;;
    orcjit)
        environment orcjit apache-tvm-ffi==0.1.15.post2 apache-tvm-ffi-orcjit numpy
        script orcjit "$here/conformance/suites/clients/load_objects.py"
        ;;
    tilelang)
        environment tilelang tilelang==0.1.15
        script tilelang "$here/conformance/suites/clients/import_tilelang.py"
        ;;
    brief)
        environment tvm-0.26 apache-tvm==0.26.0 apache-tvm-ffi==0.1.14.post1 numpy pytest ml_dtypes
        tests brief refs/tags/v0.26.0 ir/test_node_reflection.py ir/test_ir_container.py runtime/test_runtime_module_property.py
        script save-0.26 "$here/conformance/suites/clients/save_ir.py"
        ;;
    *)
        echo "no client $client"
        exit 2
        ;;
    esac
done
exit "$failed"
