#!/usr/bin/env bash
# Runs real clients of tvm-ffi on the library of their wheel and on this one, test by test: TVM's own tests, orcjit, tilelang.
#
#   conformance/suites/tvm.sh FOLDER [CLIENT...]
#
#   0.26      tests of TVM 0.26.0 with tvm-ffi 0.1.14.post1: 160 files, ten minutes for each library
#   0.27      the same tests with apache-tvm 0.27.0.post1 and tvm-ffi 0.1.15.post2, whose wheels crash together
#   0.25      IR that is saved with TVM 0.25.0.post1 and tvm-ffi 0.1.12
#   legacy    the Python of TVM 0.14 to 0.20 on the runtime alone: callbacks that raise
#   releases  the Python of every release of tvm-ffi: values, containers, functions, errors, tensors
#   orcjit    apache-tvm-ffi-orcjit: load an object file, import, clear
#   tilelang  import tilelang 0.1.15
#   brief     three files of 0.26 and IR saved with a constant, as in `.ci/run thorough`
#
# Without an argument it runs all except `brief`. Everything is created in FOLDER and kept there. TVMSPEC_TVM names a bare clone of apache/tvm, for
# the tests at their tags; without it, parts that need it print `skipped, because`. TESTS overrides the folders and files below tests/python,
# TVMSPEC_OWN the library that replaces that of the wheel (otherwise built here, with TVMSPEC_PROFILE, release if not set). For
# `legacy`, TVMSPEC_RUNTIMES is the folder of legacy-runtimes.sh, whose libraries then are the other side, and TVMSPEC_DLPACK and
# TVMSPEC_DMLC_CORE name clones, whose headers the Cython module of 0.19 and 0.20 needs. A test that ends its process is a crash of
# that test, and the rest of its file still runs. conformance/reports/clients.md has the results.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:?a folder to work in}"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- releases legacy 0.25 0.26 0.27 orcjit tilelang
failed=0
base=$PATH
# Tests that need neither a device nor a model: the rest of upstream's tests (relax, s_tir, tirx) takes longer.
places=(ir te driver runtime all-platform-minimal-test arith target support testing codegen tvmscript tirx-analysis tirx-base
    tirx-transform)
tools=(numpy pytest ml_dtypes psutil cloudpickle tornado scipy)
# The tests run in one process at a time: pools of threads would only be in its way.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

own=${TVMSPEC_OWN:-}
if [ -z "$own" ]; then
    profile=${TVMSPEC_PROFILE:-release}
    (cd "$here" && cargo rustc -q --profile "$profile" --lib --crate-type cdylib --no-default-features --features runtime,cxx \
        --target-dir "$work/target" -- -C link-arg=-Wl,-soname,libtvm_ffi.so)
    [ "$profile" != dev ] || profile=debug
    own="$work/target/$profile/libtvmspec.so"
fi

# A virtual environment with the packages, and beside it the folder `own` whose tvm_ffi has this library: it comes in front in
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

# Each test of a script with its outcome, a line each; what comes behind a dash is for a reader.
outcomes() {
    sed -nE -e '/^FAILED /s/ - .*//' -e 's/^(PASSED|FAILED) (.*)/\2 \1/p' "$1" | sort -u
}

# Both logs test by test: counts, then every difference. Without a log of the wheel, all tests have to pass.
compare() {
    local name=$1 wheel="$work/$1-wheel.txt" ours="$work/$1-own.txt"
    python3 - "$name" "$wheel" "$ours" <<'END' || failed=1
import collections, os, sys
name, *paths = sys.argv[1:]
both = [dict(line.rsplit(" ", 1) for line in open(path).read().splitlines()) for path in paths if os.path.exists(path)]
for title, outcomes in zip(("wheel", "own")[-len(both):], both):
    counts = collections.Counter(outcomes.values())
    print(f"{name} {title}: " + (", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing ran"))
if len(both) == 1:
    both.insert(0, dict.fromkeys(both[0], "PASSED"))
tests = sorted(set(both[0]) | set(both[1]))


def rank(outcome):
    """Good, failed, or worse: a crash, a hang, a test that was never reached."""
    if outcome in ("PASSED", "SKIPPED", "XFAIL", "XPASS"):
        return 2
    return int(outcome.startswith(("FAILED", "ERROR")))


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
    local name=$1 tag=$2 library
    shift 2
    if [ -z "${TVMSPEC_TVM:-}" ]; then
        echo "$name: skipped, because TVMSPEC_TVM names no bare clone of apache/tvm"
        return
    fi
    rm -rf "$work/tests-$name"
    mkdir -p "$work/tests-$name"
    git --git-dir="$TVMSPEC_TVM" archive "$tag" tests/python pyproject.toml | tar x -C "$work/tests-$name"
    cd "$work/tests-$name/tests/python"
    for library in wheel own; do
        # The folders are words, and so are the files.
        # shellcheck disable=SC2046,SC2086
        on "$library" "$python" "$here/conformance/suites/clients/run_tests.py" tvm,tvm.testing "$work/$name-$library.txt" \
            "$work/$name-$library.log" $(for place in ${TESTS:-"$@"}; do find $place -name 'test_*.py' | sort; done) \
            >"$work/$name-$library.times"
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

# The Python of releases of before 0.25 has no wheel: it is taken from the tags, without the compiler. From 0.20 on it is Cython only.
legacy() {
    local release name frontend folder library libraries
    if [ -z "${TVMSPEC_TVM:-}" ]; then
        echo "legacy: skipped, because TVMSPEC_TVM names no bare clone of apache/tvm"
        return
    fi
    environment legacy apache-tvm-ffi==0.1.15.post2 'numpy<2' scipy decorator attrs psutil tornado cloudpickle typing_extensions \
        ml_dtypes cython setuptools
    for name in 0.14 0.15 0.16 0.17 0.18 0.19 0.19-cython 0.20-cython; do
        release=${name%-cython} frontend=ctypes libraries=own
        folder="$work/python-$release"
        mkdir -p "$folder/own" "$folder/wheel"
        cp "$own" "$folder/own/libtvm_runtime.so"
        git --git-dir="$TVMSPEC_TVM" archive "refs/tags/v$release.0" python include | tar x -C "$folder"
        if [ "$name" != "$release" ]; then
            frontend=cython
            cython "$folder" "$release" || continue
        fi
        name=legacy-$name
        if [ -f "${TVMSPEC_RUNTIMES:-}/$release/libtvm_runtime.so" ]; then
            cp "$TVMSPEC_RUNTIMES/$release/libtvm_runtime.so" "$folder/wheel/"
            libraries="wheel own"
        else
            echo "$name wheel: skipped, because TVMSPEC_RUNTIMES has no $release/libtvm_runtime.so"
        fi
        rm -f "$work/$name-wheel.txt"
        for library in $libraries; do
            TVM_USE_RUNTIME_LIB=1 TVM_FFI=$frontend TVM_LIBRARY_PATH="$folder/$library" PYTHONPATH="$folder/python" \
                timeout -k 5 120 "$python" "$here/conformance/suites/clients/raise_errors.py" \
                >"$work/$name.raw" 2>"$work/$name-$library.err" || echo "FAILED process" >>"$work/$name.raw"
            outcomes "$work/$name.raw" >"$work/$name-$library.txt"
        done
        compare "$name"
    done
}

# cython FOLDER RELEASE: the extension module, in its place.
cython() {
    local folder=$1 release=$2 name clone commit
    [ ! -f "$folder/cython" ] || return 0
    for name in dlpack dmlc-core; do
        clone=TVMSPEC_$(tr a-z- A-Z_ <<<"$name")
        if [ -z "${!clone:-}" ]; then
            echo "legacy-$release-cython: skipped, because $clone names no clone"
            return 1
        fi
        commit=$(git --git-dir="$TVMSPEC_TVM" rev-parse "refs/tags/v$release.0:3rdparty/$name")
        git -C "${!clone}" archive "$commit" include | tar x -C "$folder"
    done
    cat >"$folder/python/build_core.py" <<'END'
from Cython.Build import cythonize
from setuptools import Extension, setup

flags = ["-std=c++17", "-O0", "-w", "-DDMLC_USE_LOGGING_LIBRARY=<tvm/runtime/logging.h>"]
sources = ["tvm/_ffi/_cython/core.pyx"]
core = Extension("tvm._ffi._cy3.core", sources, include_dirs=["../include"], extra_compile_args=flags, language="c++")
setup(name="core", ext_modules=cythonize([core], compiler_directives={"language_level": 3}))
END
    (cd "$folder/python" && "$python" build_core.py build_ext --inplace >"$folder/cython.log" 2>&1) || {
        echo "legacy-$release-cython: the extension module does not compile: $folder/cython.log"
        failed=1
        return 1
    }
    touch "$folder/cython"
}

for client in "$@"; do
    case $client in
    0.26)
        environment tvm-0.26 apache-tvm==0.26.0 apache-tvm-ffi==0.1.14.post1 "${tools[@]}"
        script save-0.26 "$here/conformance/suites/clients/save_ir.py"
        tests 0.26 refs/tags/v0.26.0 "${places[@]}"
        ;;
    0.25)
        environment tvm-0.25 apache-tvm==0.25.0.post1 apache-tvm-ffi==0.1.12 numpy
        script save-0.25 "$here/conformance/suites/clients/save_ir.py"
        ;;
    0.27)
        # 0.26.0 is the newest tag with tests.
        environment tvm-0.27 apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.15.post2 "${tools[@]}"
        script save-0.27 "$here/conformance/suites/clients/save_ir.py"
        tests 0.27 refs/tags/v0.26.0 "${places[@]}"
        ;;
    legacy)
        legacy
        ;;
    releases)
        # 0.1.0 is left out: its test library needs a newer libstdc++ than Debian 12 has.
        for release in 0.1.2 0.1.4 0.1.6 0.1.7 0.1.8.post2 0.1.9 0.1.10 0.1.11 0.1.12 0.1.13.post3 0.1.14.post1 0.1.15.post2; do
            environment "ffi-$release" "apache-tvm-ffi==$release" numpy pytest
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
        environment tvm-0.26 apache-tvm==0.26.0 apache-tvm-ffi==0.1.14.post1 "${tools[@]}"
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
