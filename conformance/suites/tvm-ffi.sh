#!/usr/bin/env bash
# Runs the suites of tvm-ffi 0.1.15.post2 (Python, C++, Rust bindings) on the library of its wheel and on this one.
#
#   conformance/suites/tvm-ffi.sh FOLDER [wheel] [own]
#
# Everything is created in FOLDER and kept there, so that a second run is short: the source archive (or put it there yourself),
# a virtual environment with the wheel, this library as libtvm_ffi.so, the C++ tests, the Rust tests. Needs cargo, g++, cmake,
# ninja, python3 with venv, x86-64 Linux, 4 GB. TVMSPEC_OWN is the library, if one is already built; SUITES names the suites to run
# (`python cpp rust` if not set). conformance/reports/tvm-ffi-suites.md has the results.
set -euo pipefail
version=0.1.15.post2
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:?a folder to work in}"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- wheel own
sources="$work/apache_tvm_ffi-$version"
python="$work/venv/bin/python"

if [ ! -x "$python" ]; then
    python3 -m venv "$work/venv"
    "$python" -m pip install -q --disable-pip-version-check "apache-tvm-ffi==$version" numpy pytest ml_dtypes
fi
if [ ! -d "$sources" ]; then
    [ -f "$sources.tar.gz" ] ||
        "$python" -m pip download -q --no-deps --no-binary apache-tvm-ffi -d "$work" "apache-tvm-ffi==$version"
    tar xzf "$sources.tar.gz" -C "$work"
fi
libraries=$("$python" -c 'import importlib.util, pathlib; print(pathlib.Path(importlib.util.find_spec("tvm_ffi").origin).parent / "lib")')
[ -f "$work/libtvm_ffi.wheel.so" ] || cp "$libraries/libtvm_ffi.so" "$work/libtvm_ffi.wheel.so"

# Our library under the name that everything else links to.
own=${TVMSPEC_OWN:-}
if [ -z "$own" ]; then
    (cd "$here" && cargo rustc -q --release --lib --crate-type cdylib --no-default-features --features runtime,cxx \
        --target-dir "$work/target" -- -C link-arg=-Wl,-soname,libtvm_ffi.so)
    own="$work/target/release/libtvmspec.so"
fi

# The file is replaced, never written over: a running process may have it mapped.
put() {
    local from="$work/libtvm_ffi.wheel.so"
    [ "$1" != own ] || from="$own"
    cp "$from" "$libraries/libtvm_ffi.so.new"
    mv "$libraries/libtvm_ffi.so.new" "$libraries/libtvm_ffi.so"
}

# asked NAME: whether this suite is to run.
asked() {
    [[ " ${SUITES:-python cpp rust} " == *" $1 "* ]]
}

# Built against the wheel once; only the library that they find changes.
put wheel
build_cpp() {
    mkdir -p "$work/cpp"
    cat >"$work/cpp/CMakeLists.txt.new" <<END
cmake_minimum_required(VERSION 3.18)
project(t CXX)
set(CMAKE_CXX_STANDARD 17)
set(S $sources)
set(V $libraries)
set(BUILD_GMOCK OFF)
add_subdirectory(\${S}/build_test/_deps/googletest-src gtest)
file(GLOB T \${S}/tests/cpp/test*.cc \${S}/tests/cpp/extra/test*.cc)
add_executable(tvm_ffi_tests \${T})
target_compile_options(tvm_ffi_tests PRIVATE -O0 -w)
target_include_directories(tvm_ffi_tests PRIVATE \${S}/include \${S}/3rdparty/dlpack/include \${S}/src)
target_link_libraries(tvm_ffi_tests PRIVATE \${V}/libtvm_ffi.so \${V}/libtvm_ffi_testing.so GTest::gtest_main)
END
    mv "$work/cpp/CMakeLists.txt.new" "$work/cpp/CMakeLists.txt"
    cmake -G Ninja -S "$work/cpp" -B "$work/cpp/b" >"$work/cpp.log"
    ninja -C "$work/cpp/b" >>"$work/cpp.log"
}
if asked cpp; then build_cpp; fi

export PATH="$work/venv/bin:$PATH" LD_LIBRARY_PATH="$libraries" CARGO_TARGET_DIR="$work/rust-target"
if asked rust; then (cd "$sources/rust" && cargo test -q --tests --no-run 2>"$work/rust.log"); fi

for library in "$@"; do
    put "$library"
    echo "== $library"
    if asked python; then
        (cd "$sources/tests/python" && "$python" -m pytest -q -o addopts= -p no:cacheprovider -rfExXs . \
            >"$work/python-$library.txt" 2>&1) || true
        echo "Python: $(tail -n 1 "$work/python-$library.txt")"
    fi
    if asked cpp; then
        "$work/cpp/b/tvm_ffi_tests" >"$work/cpp-$library.txt" 2>&1 || true
        echo "C++: $(grep -E '^\[  (PASSED|FAILED)  \] [0-9]+ tests?' "$work/cpp-$library.txt" | tr '\n' ' ')"
    fi
    if asked rust; then
        (cd "$sources/rust" && cargo test --tests --no-fail-fast >"$work/rust-$library.txt" 2>&1) || true
        awk '/^test result/ {passed += $4; failed += $6; ignored += $8}
            END {print "Rust: " passed " passed, " failed " failed, " ignored " ignored"}' "$work/rust-$library.txt"
    fi
done
