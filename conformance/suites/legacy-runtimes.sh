#!/usr/bin/env bash
# Builds the runtime, without a compiler, of every TVM release with the C interface of 0.7 to 0.20, for `check --impl legacy:LIB@RELEASE`.
#
#   conformance/suites/legacy-runtimes.sh FOLDER [TAG...]
#
# Without a tag it builds all of v0.7.0 to v0.20.0. The results are FOLDER/0.7/libtvm_runtime.so and so on, and stay: a second run builds
# missing ones. If a build fails, its reason is printed and the others are built; the exit status is then 1.
#
# TVMSPEC_TVM, TVMSPEC_DMLC_CORE and TVMSPEC_DLPACK name clones, bare or not, of apache/tvm, dmlc/dmlc-core and dmlc/dlpack: the last
# two are used at the commits that the tag names as its submodules. TVMSPEC_OPENCL is the value of `USE_OPENCL`: ON, or a folder with
# include/CL and a libOpenCL.so below lib (OFF if it is absent; then modules of kind opencl have no loader). JOBS is the number of
# compiler processes (2). Needs cmake, ninja, g++ and git: one to three minutes and 1 GB for each release.
#
# Without LLVM and libbacktrace; with RPC, StackVM, the graph executor and the debug executor, and the profiler that the latter needs.
set -uo pipefail
mkdir -p "${1:?a folder to work in}"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- $(seq -f 'v0.%g.0' 7 20)

for variable in TVMSPEC_TVM TVMSPEC_DMLC_CORE TVMSPEC_DLPACK; do
    if [ -z "${!variable:-}" ]; then
        echo "skipped, because $variable names no clone" >&2
        exit 2
    fi
done

# archive CLONE COMMIT FOLDER [PATH...]: files of a commit, without its history.
archive() {
    local clone=$1 commit=$2 folder=$3
    shift 3
    mkdir -p "$folder"
    git -C "$clone" archive "$commit" "$@" | tar x -C "$folder"
}

# submodule TAG NAME CLONE SOURCE
submodule() {
    local tag=$1 name=$2 clone=$3 source=$4 commit
    commit=$(git -C "$TVMSPEC_TVM" rev-parse -q --verify "refs/tags/$tag:3rdparty/$name") || return
    archive "$clone" "$commit" "$source/3rdparty/$name"
}

# build TAG: in the folder of its release.
build() {
    local tag=$1 folder=$2 source="$2/source" build="$2/build"
    # A branch may have the name of a tag.
    git -C "$TVMSPEC_TVM" rev-parse -q --verify "refs/tags/$tag^{commit}" >"$folder/commit" || {
        echo "there is no tag $tag"
        return 1
    }
    rm -rf "$source" "$build"
    archive "$TVMSPEC_TVM" "refs/tags/$tag" "$source" CMakeLists.txt cmake include src 3rdparty || return
    submodule "$tag" dmlc-core "$TVMSPEC_DMLC_CORE" "$source" || return
    submodule "$tag" dlpack "$TVMSPEC_DLPACK" "$source" || return
    # Otherwise half of the time is spent on reading the same headers again.
    cat >"$folder/headers.cmake" <<'LISTS'
cmake_language(DEFER CALL precompile)
function(precompile)
    foreach(target tvm_runtime_objs tvm_runtime)
        if(TARGET ${target})
            target_precompile_headers(${target} PRIVATE <dmlc/json.h> <dmlc/memory_io.h> <tvm/runtime/module.h> <tvm/runtime/ndarray.h>
                <tvm/runtime/packed_func.h> <tvm/runtime/registry.h> <algorithm> <memory> <mutex> <string> <thread> <unordered_map> <vector>)
            break()
        endif()
    endforeach()
endfunction()
LISTS
    # The graph executor is called the graph runtime in 0.7. Releases ignore unknown options.
    cmake -S "$source" -B "$build" -G Ninja -Wno-dev -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_PROJECT_INCLUDE="$folder/headers.cmake" \
        -DCMAKE_C_FLAGS=-w -DCMAKE_CXX_FLAGS=-w -DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' \
        -DUSE_LLVM=OFF -DUSE_LIBBACKTRACE=OFF -DUSE_OPENCL="${TVMSPEC_OPENCL:-OFF}" -DUSE_RPC=ON -DUSE_STACKVM_RUNTIME=ON \
        -DUSE_GRAPH_RUNTIME=ON -DUSE_GRAPH_RUNTIME_DEBUG=ON -DUSE_GRAPH_EXECUTOR=ON -DUSE_GRAPH_EXECUTOR_DEBUG=ON -DUSE_PROFILER=ON ||
        return
    ninja -C "$build" -j "${JOBS:-2}" tvm_runtime || return
    cp "$build/libtvm_runtime.so" "$folder/new.so" && mv "$folder/new.so" "$folder/libtvm_runtime.so" && rm -rf "$source" "$build"
}

failed=()
for tag in "$@"; do
    release=${tag#v}
    release=${release%.*}
    folder="$work/$release"
    mkdir -p "$folder"
    if [ -f "$folder/libtvm_runtime.so" ]; then
        echo "$release: is there"
    elif build "$tag" "$folder" >"$folder/log" 2>&1; then
        echo "$release: built from $tag, commit $(cut -c 1-10 "$folder/commit")"
    else
        reason=$(grep -m 1 -E 'error:|CMake Error|FAILED|fatal:|there is no tag' "$folder/log" || tail -n 1 "$folder/log")
        echo "$release: failed: $reason (see $folder/log)"
        failed+=("$release")
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "${#failed[@]} failed: ${failed[*]}"
    exit 1
fi
