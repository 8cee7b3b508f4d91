"""C text."""

from classes import n, of


@of("arrays.c")
def c_arrays():
    "100,000 empty arrays that are named like a library binary"
    return b"#include <x.h>\n" + b"".join(b"const char p%d__tvm_ffi__library_bin[]={};\n" % at for at in range(n(100_000)))


@of("functions.c")
def c_functions():
    "200,000 functions"
    return b"#include <x.h>\n" + b"".join(b"TVM_DLL int f%d(){\n" % at for at in range(n(200_000)))
