"""Arrays of NumPy, alone and in a zip."""

import io
import struct
import zipfile

from classes import n, of


def npy(shape="(2,)", descr="<f4", order="False", data=bytes(8), version=1, length=None):
    head = ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)).encode()
    length = len(head) if length is None else length
    size = struct.pack("<H", length) if version == 1 else struct.pack("<I", length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + head + data


def npz(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name + ".npy"), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def overlapping(count, data):
    """A zip of `count` names for one member."""
    one = npz([("m", data)])
    start = one.index(b"PK\x01\x02")
    entry = one[start:one.index(b"PK\x05\x06")]
    named = entry[:28] + struct.pack("<H", 9) + entry[30:46]
    entries = b"".join(named + b"%05d.npy" % at for at in range(count))
    tail = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, count, count, len(entries), start, 0)
    return one[:start] + entries + tail


@of("overlapping.npz", "run")
def npz_overlap():
    "2,000 names for one member that inflates to 20 MB"
    return overlapping(n(2_000), npy("(5000000,)", data=bytes(20_000_000)))


@of("large.npz", "run")
def npz_large():
    "the input of a model, a thousand times as large as the model asks for"
    return npz([("x", npy("(20000000,)", data=bytes(80_000_000)))])


@of("unused.npz", "run")
def npz_unused():
    "a member that the model does not ask for, 300 MB of zeros"
    return npz([("out_0", npy("(75000000,)", data=bytes(300_000_000)))])


@of("header.npy", "call run-npy")
def npy_header():
    "a header of 2^32-1 bytes"
    return npy(version=2, length=0xffffffff)


@of("header-nested.npy", "call run-npy")
def npy_nested():
    "a header of 60,000 brackets in each other"
    return npy(shape="(" * 30_000 + ")" * 30_000)


@of("shape.npy", "call run-npy")
def npy_shape():
    "2^62 elements, none stored"
    return npy("(4611686018427387904,)", data=b"")


@of("objects.npy", "call run-npy")
def npy_objects():
    "pickled objects"
    return npy(descr="|O")
