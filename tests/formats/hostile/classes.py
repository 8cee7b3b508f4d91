"""The classes of files, and the numbers and texts that they are made of. A class makes the bytes of its file, or those and the files beside it by name."""

import struct

CLASSES = {}
SCALE = 1


CODE = "verify inspect inspect-code explain dump"


def of(name, commands="verify inspect explain dump"):
    def keep(make):
        CLASSES[name] = (make, commands.split())
        return make
    return keep


def n(count):
    return max(1, count // SCALE)


def q(*words):
    return struct.pack(f"<{len(words)}Q", *words)


def s(text):
    data = text if isinstance(text, bytes) else text.encode()
    return q(len(data)) + data
