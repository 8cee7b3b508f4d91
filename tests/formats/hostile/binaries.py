"""Library binaries."""

from classes import n, of, q, s


def blob22(modules, indptr=None, indices=()):
    indptr = [0] * (len(modules) + 1) if indptr is None else indptr
    body = q(len(indptr), *indptr) + q(len(indices), *indices)
    return s(body + b"".join(modules))


def module(kind, payload):
    return s(kind) + s(payload)


def function(name, types=0, tags=(), extra=0):
    info = s(name) + q(types) + bytes([2, 32, 1, 0]) * types + q(len(tags)) + b"".join(s(tag) for tag in tags)
    return s(name) + info + q(extra) + bytes(4 * extra)


def opencl(functions):
    return module("opencl", s("cl") + q(len(functions)) + b"".join(functions) + s("code"))


@of("modules.bin")
def many_modules():
    "200,000 modules of an unknown kind"
    return blob22([s("_lib")] + [module("k", b"x")] * n(200_000))


@of("functions.bin")
def many_functions():
    "100,000 functions of one module"
    return blob22([s("_lib"), opencl([function("f%d" % at) for at in range(n(100_000))])], [0, 1, 1], [1])


@of("argument-types.bin")
def many_types():
    "one function of 1,500,000 arguments"
    return blob22([s("_lib"), opencl([function("f", n(1_500_000))])], [0, 1, 1], [1])


@of("launch-tags.bin")
def many_tags():
    "one function of 500,000 unknown launch tags"
    return blob22([s("_lib"), opencl([function("f", 0, [""] * n(500_000))])], [0, 1, 1], [1])


@of("long-function-names.bin")
def long_names():
    "ten functions with names of 500 KB"
    return blob22([s("_lib"), opencl([function("%d" % at + "n" * 500_000) for at in range(10)])], [0, 1, 1], [1])


@of("imports.bin")
def many_imports():
    "a chain of 90 modules; the last imports one module 300,000 times"
    count, many = 92, n(300_000)
    indptr = list(range(91)) + [90 + many, 90 + many]
    indices = list(range(1, 91)) + [91] * many
    return blob22([s("_lib")] + [module("k", b"x")] * (count - 1), indptr, indices)
