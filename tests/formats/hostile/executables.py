"""Parameters, tensors and executables."""

import os
import struct

from classes import CODE, n, of, q, s

PARAMS, TENSOR = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F


def tensor(data=b""):
    return q(TENSOR, 0) + struct.pack("<iiiBBH", 1, 0, 1, 0, 8, 1) + q(len(data)) + q(len(data)) + data


@of("names.params", "verify inspect explain dump run-params")
def many_params():
    "60,000 parameters without data"
    count = n(60_000)
    return q(PARAMS, 0, count) + b"".join(s("p%d" % at) for at in range(count)) + q(count) + tensor() * count


@of("shape.tensor")
def wide_tensor():
    "a tensor of 500,000 dimensions of 1"
    dims = n(500_000)
    return q(TENSOR, 0) + struct.pack("<iiiBBH", 1, 0, dims, 0, 8, 1) + q(1) * dims + q(1) + b"x"


def relax(functions=0, constants=b"", count=0, instructions=0):
    magic = 0xD225DE2F4214151E
    head = q(magic) + s("0.14")
    table = q(functions) + b"".join(struct.pack("<i", 1) + s("f%d" % at) + q(0, 0, 0, 0) + q(0) for at in range(functions))
    code = q(instructions, *range(0, instructions * 1)) + q(instructions) + struct.pack("<Q", 1) * instructions
    return head + table + q(0) + q(count) + constants + code


@of("vm-functions.ro", CODE)
def vm_functions():
    "a Relax VM executable of 100,000 functions"
    return relax(n(100_000))


@of("vm-constants.ro", CODE)
def vm_constants():
    "a Relax VM executable of 300,000 empty shapes"
    count = n(300_000)
    return relax(1, (struct.pack("<i", 69) + q(0)) * count, count)


def calls(name, operands):
    """A Relax VM executable of one call with so many operands, each the function of this name."""
    function, nothing = 3 << 56 | 1, 1 << 54
    head = q(0xD225DE2F4214151E) + s("0.14") + q(2)
    table = struct.pack("<i", 1) + s("main") + q(0, 2, 1, 2) + q(1) + s("x")
    table += struct.pack("<i", 0) + s(name) + struct.pack("<4q", 0, 0, -2, 0) + q(0)
    words = q(1, nothing, 1, operands) + q(function) * operands + q(2, 0)
    return head + table + q(0) + q(0) + q(2, 0, 4 + operands) + q(len(words) // 8) + words


@of("vm-operands.ro", CODE)
def vm_operands():
    "a Relax VM executable of one call with 200,000 arguments, each a function with a name of 200 bytes"
    return calls("n" * 200, n(200_000))


@of("vm-operands-wide.ro", CODE)
def vm_operands_wide():
    "a Relax VM executable of one call with 200,000 arguments, each a function with a name of 200 characters of four bytes"
    return calls("\U0001f600" * 200, n(200_000))


@of("vm-operands-escaped.ro", CODE)
def vm_operands_escaped():
    "a Relax VM executable of one call with 200,000 arguments, each a function with a name of 200 characters that do not print"
    return calls("\x01" * 200, n(200_000))


@of("vm-compiled.ro", CODE)
def vm_compiled():
    "a Relax VM executable of 10,000 compiled functions, each all of 30,000 instructions"
    functions, instructions = n(10_000), n(30_000)
    head = q(0xD225DE2F4214151E) + s("0.14") + q(functions)
    table = b"".join(struct.pack("<i", 2) + s("f%d" % at) + q(0, instructions, 0, 1) + q(0) for at in range(functions))
    code = q(instructions, *range(0, 2 * instructions, 2)) + q(2 * instructions) + q(2, 0) * instructions
    return head + table + q(0) + q(0) + code


def relay(name, calls):
    """Relay VM code of 0.6: one function that calls so often what has this name."""
    def instruction(opcode, *fields):
        mixed = opcode
        for field in fields:
            mixed ^= field + 0x9e3779b9 + (mixed << 6) + (mixed >> 2) & 2**64 - 1
        return q(2 + len(fields), mixed, opcode, *fields)
    head = q(0xD225DE2F4214151D) + s("0.6.0") + q(1) + s("main") + q(0) + q(1) + s(name)
    function = q(3) + s("main") + s("1") + s(str(calls + 1)) + q(1) + s("x")
    return head + q(1) + function + instruction(4, 0, 1, 0, 0) * calls + instruction(1, 0)


@of("relay-name.ro", CODE)
def relay_name():
    "Relay VM code of 2,000 calls of one function with a name of 1 MB"
    return relay("f" * n(1_000_000), 2_000)


@of("relay-names.ro", CODE)
def relay_names():
    "Relay VM code of 16,000 calls of one function with a name of 300 KB"
    return relay("f" * n(300_000), 16_000)


@of("functions.stackvm")
def stackvm():
    "a StackVM module of 50,000 functions"
    count = min(n(50_000), 60_000)
    one = b"".join(s("f%d" % at) + q(0, 0, 0, 0, 0, 0) for at in range(count))
    return q(count) + one + s("f0") + q(0)


# ---- real files with one number changed, which are run

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "golden")


def edited(name, *marks, form, old, new):
    """Returns the golden with the number `old` after the marks changed to `new`. The marks follow each other."""
    with open(os.path.join(GOLDEN, name), "rb") as file:
        data = bytearray(file.read())
    at = 0
    for mark in marks:
        at = data.index(mark, at) + len(mark)
    at = data.index(struct.pack(form, old), at)
    struct.pack_into(form, data, at, new)
    return bytes(data)


# What the model takes: a batch of two.
VM_INPUT = "x-of-vm.npy"


def registers(count):
    return edited("vm/mlp.so", s("main"), form="<Q", old=30, new=count)


# Dtype float32, without the lanes that follow it.
FLOAT32 = b"\x02\x20"


@of("vm-registers-27.so", "verify inspect explain dump run-vm")
def many_registers():
    "a Relax VM library with a function of 2^27 registers"
    return registers(2**27)


@of("vm-registers-31.so", "verify inspect explain dump run-vm")
def more_registers():
    "a Relax VM library with a function of 2^31 registers"
    return registers(2**31)


@of("vm-registers-32.so", "verify inspect explain dump run-vm")
def most_registers():
    "a Relax VM library with a function of 2^32 + 1 registers"
    return registers(2**32 + 1)


@of("vm-lanes.so", "verify inspect explain dump run-vm")
def lanes_of_a_constant():
    "a Relax VM library with a constant of 1,024 lanes, of which one is stored"
    return edited("vm/mlp.so", q(TENSOR), FLOAT32, form="<H", old=1, new=1024)


@of("lanes.params", "verify inspect explain dump run-params")
def lanes_of_a_parameter():
    "a parameter of 1,024 lanes, of which one is stored"
    return edited("graph/models/v0.8/mlp.params", q(TENSOR), FLOAT32, form="<H", old=1, new=1024)
