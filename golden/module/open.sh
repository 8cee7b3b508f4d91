#!/bin/sh
# Compiles the hand-written libraries of this folder for x86-64 Linux: `open.sh` here, with a GCC.
set -e
build() { # output, source, options
    output=$1 source=$2
    shift 2
    gcc -shared -fPIC -O1 -s -nostdlib -fvisibility=hidden -Wl,-z,noseparate-code -Wl,--build-id=none -fcf-protection=none \
        -fno-stack-protector -fno-asynchronous-unwind-tables -Wa,-mx86-used-note=no -Wno-unused -o "$output" "$source" "$@"
}
build open-0.22.so open-0.22.c -Wl,--hash-style=gnu
# The older table of symbols, which has no mask to look at first.
build open-0.22-sysv.so open-0.22.c -Wl,--hash-style=sysv
# Behind another library, whose symbols count as its own to the dynamic linker.
build open-0.22-behind.so open-0.22.c -Wl,--hash-style=gnu -Wl,--no-as-needed -lresolv
# Linked for addresses that begin behind the first page, so that nothing is where its addresses count from.
build open-0.22-high.so open-0.22.c -Wl,--hash-style=gnu -Wl,-Ttext-segment=0x10000
# The program headers behind everything else, where no segment has them.
python3 -c 'import struct, sys
file = bytearray(open(sys.argv[1], "rb").read())
at, count = struct.unpack_from("<Q", file, 32)[0], struct.unpack_from("<H", file, 56)[0]
headers = bytes(file[at : at + 56 * count])
file += bytes(-len(file) % 8)
struct.pack_into("<Q", file, 32, len(file))
open(sys.argv[2], "wb").write(file + headers)' open-0.22.so open-0.22-headers.so
build open-0.8.so open-0.8.c -Wl,--hash-style=gnu
# Modules of C++, and who calls the virtual functions of any.
g++ -std=c++17 -shared -fPIC -O1 -s -fvisibility=hidden -Wl,--build-id=none -fcf-protection=none -Wa,-mx86-used-note=no -Wno-delete-non-virtual-dtor \
    -o foreign.so foreign.cc
# Functions of a runtime that no release has, and one that may be missing.
echo 'int TVMNoSuchFunction(void); int __tvm_ffi_f(void) { return TVMNoSuchFunction(); }
__attribute__((visibility("default"))) int (*keep)(void) = __tvm_ffi_f;' > open-unmet.c
build open-unmet.so open-unmet.c -Wl,--hash-style=gnu
sed 's/^int TVM/__attribute__((weak)) int TVM/' open-unmet.c > open-weak.c
build open-weak.so open-weak.c -Wl,--hash-style=gnu
# A context in memory that cannot be written, and a library binary that promises more than its symbol holds.
echo '#define SLOT __attribute__((visibility("default")))
SLOT void* const __tvm_ffi__library_ctx = 0;
SLOT int __tvm_ffi_f(void) { return 0; }' > open-constant.c
build open-constant.so open-constant.c -Wl,--hash-style=gnu
# A library binary, and the same whose symbol is a byte shorter than what its header promises.
blob() { # output, what is missing at the end, table of symbols
    echo ".section .rodata, \"a\"
.globl __tvm_ffi__library_bin
.type __tvm_ffi__library_bin, @object
__tvm_ffi__library_bin: .incbin \"../blob/opencl.bin\"
.size __tvm_ffi__library_bin, . - __tvm_ffi__library_bin - $2
.quad 1
.section .note.GNU-stack, \"\"" > "$1.s"
    build "$1.so" "$1.s" -Wl,--hash-style="${3:-gnu}"
    rm "$1.s"
}
blob open-blob 0
blob open-blob-short 1
blob open-blob-sysv 0 sysv
# The same beside symbols of eight bytes at its address, before and behind it in the table.
{
    echo '.section .rodata, "a"'
    for twin in __tvm_ffi__library_bin twin_a twin_b twin_c twin_d twin_e twin_f; do
        printf '.globl %s\n.type %s, @object\n%s:\n' $twin $twin $twin
    done
    echo '.incbin "../blob/opencl.bin"
.size __tvm_ffi__library_bin, . - __tvm_ffi__library_bin
.quad 1'
    for twin in a b c d e f; do echo ".size twin_$twin, 8"; done
    echo '.section .note.GNU-stack, ""'
} > open-blob-twins.s
build open-blob-twins.so open-blob-twins.s -Wl,--hash-style=gnu
rm open-blob-twins.s
# A function that is chosen when it is bound, and one that is not.
echo 'typedef struct { int type, padding; long number; } Any;
#define BODY(name, value) int name(void* self, const Any* args, int count, Any* result) { *result = (Any){1, 0, value}; return 0; }
static BODY(chosen, 7)
static void* choose(void) { return chosen; }
#define SLOT __attribute__((visibility("default")))
SLOT int __tvm_ffi_f(void* self, const Any* args, int count, Any* result) __attribute__((ifunc("choose")));
SLOT BODY(__tvm_ffi_g, 8)' > open-indirect.c
build open-indirect.so open-indirect.c -Wl,--hash-style=gnu
rm -f open-unmet.c open-weak.c open-constant.c open-indirect.c
