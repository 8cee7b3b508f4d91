"""Writes the expected JSON of the parameter files of this folder, without the code under test.

    python expect.py          (needs numpy)

The files are parsed with `struct`; if an .npz contains the arrays, every value is compared with it.
"""

import base64
import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent
SMALL = "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz".split()
NAMES = {0: "int{}", 1: "uint{}", 2: "float{}", 4: "bfloat{}", 6: "bool"} | dict(enumerate(SMALL, 7))


def main():
    for file in sorted(HERE.glob("*.params")):
        names, tensors = take_apart(file.read_bytes())
        known = file.with_suffix(".npz")
        if known.exists():
            compare(dict(zip(names, tensors)), np.load(known))
        form = {"tensors": [{"name": name} | tensor for name, tensor in zip(names, tensors)]}
        file.with_suffix(".json").write_text(json.dumps(form) + "\n")
        print(f"{file.name}: {len(names)} tensors" + (", equal to the .npz" if known.exists() else ""))


def take_apart(data):
    at = 0

    def take(format):
        nonlocal at
        values = struct.unpack_from("<" + format, data, at)
        at += struct.calcsize("<" + format)
        return values if len(values) > 1 else values[0]

    assert take("QQ") == (0xF7E58D4F05049CB7, 0)
    names = []
    for _ in range(take("Q")):
        names.append(take(f"{take('Q')}s").decode())
    assert take("Q") == len(names)
    tensors = []
    for _ in names:
        assert take("QQ") == (0xDD5E40F096B4A13F, 0)
        device = take("ii")
        ndim, code, bits, lanes = take("iBBH")
        assert lanes == 1
        shape = [take("q") for _ in range(ndim)]
        size = take("q")
        payload = data[at : at + size]
        at += size
        tensors.append(
            {
                "dtype": NAMES[code].format(bits),
                "shape": shape,
                "device": list(device),
                "data": base64.b64encode(payload).decode(),
            }
        )
    assert at == len(data)
    return names, tensors


def compare(tensors, known):
    assert set(tensors) == set(known.files), (set(tensors), set(known.files))
    for name, array in known.items():
        tensor = tensors[name]
        assert list(array.shape) == tensor["shape"], name
        assert array.tobytes() == base64.b64decode(tensor["data"]), name


if __name__ == "__main__":
    main()
