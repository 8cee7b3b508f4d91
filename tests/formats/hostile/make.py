"""Writes small files that provoke much work: `make.py DIR [SCALE]` writes one of each class below DIR.

Every function of the modules below creates one class, and describes its content in the first line. SCALE divides the sizes; with 1 they are
those of the report conformance/reports/hostile-files.md. Nothing here shares code with the program that is measured.
"""

import os
import sys

import classes
# Each registers its classes, in this order.
import object_files
import archives
import c_text
import binaries
import executables
import json_files
import arrays
import other_inputs


def main():
    folder = sys.argv[1]
    classes.SCALE = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    os.makedirs(folder, exist_ok=True)
    for name, (make, commands) in classes.CLASSES.items():
        made = make()
        data, beside = made if isinstance(made, tuple) else (made, {})
        for other, content in {name: data, **beside}.items():
            with open(os.path.join(folder, other), "wb") as file:
                file.write(content)
    with open(os.path.join(folder, executables.VM_INPUT), "wb") as file:
        file.write(arrays.npy("(2, 8)", data=bytes(64)))


if __name__ == "__main__":
    main()
