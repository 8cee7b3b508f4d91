"""Everything that a function for files reads: paths of each kind, and objects with the buffer protocol."""

from __future__ import annotations

import array
import ctypes
import errno
import mmap
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import tvmspec


def mapped(path: Path, access: int) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=access)


BUFFERS: dict[str, Callable[[Path], Any]] = {
    "bytes": lambda path: path.read_bytes(),
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview of bytes": lambda path: memoryview(path.read_bytes()),
    "memoryview of bytearray": lambda path: memoryview(bytearray(path.read_bytes())),
    "read-only memoryview of bytearray": lambda path: memoryview(bytearray(path.read_bytes())).toreadonly(),
    "mmap for reading": lambda path: mapped(path, mmap.ACCESS_READ),
    "private mmap": lambda path: mapped(path, mmap.ACCESS_COPY),
    "array.array": lambda path: array.array("B", path.read_bytes()),
    "ctypes": lambda path: (ctypes.c_ubyte * path.stat().st_size).from_buffer_copy(path.read_bytes()),
    "numpy": lambda path: np.fromfile(path, np.uint8),
    "read-only numpy": lambda path: np.frombuffer(path.read_bytes(), np.uint8),
    "part of memoryview": lambda path: memoryview(b"x" + path.read_bytes() + b"x")[1:-1],
}


@pytest.mark.parametrize("kind", BUFFERS)
def test_every_buffer_has_the_answers_of_the_path(golden: Path, kind: str, tmp_path: Path) -> None:
    path = golden / "blob/opencl.bin"
    source = BUFFERS[kind](path)
    for function in (tvmspec.verify, tvmspec.inspect):
        assert function(source, name=str(path)).to_json() == function(path).to_json()
    assert tvmspec.dump(source).units[0].fields == tvmspec.dump(path).units[0].fields
    assert tvmspec.explain(source).loads("0.8") == tvmspec.explain(path).loads("0.8")
    assert tvmspec.unpack(source) == tvmspec.unpack(path)
    assert tvmspec.convert(source, layout="0.7") == tvmspec.convert(path, layout="0.7")
    tvmspec.convert(source, tmp_path / "x.bin")
    assert (tmp_path / "x.bin").read_bytes() == path.read_bytes()
    if isinstance(source, bytearray):
        # No function keeps the buffer, which would make this an error.
        source.append(0)


def test_buffers_that_cannot_be_read(golden: Path) -> None:
    data = (golden / "blob/opencl.bin").read_bytes()
    with pytest.raises(BufferError):
        tvmspec.verify(memoryview(data)[::2])
    released = memoryview(data)
    released.release()
    with pytest.raises(ValueError, match="released"):
        tvmspec.verify(released)
    closed = mapped(golden / "blob/opencl.bin", mmap.ACCESS_READ)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        tvmspec.verify(closed)
    for wrong in (7, None, [1, 2], 1.5):
        with pytest.raises(TypeError):
            tvmspec.verify(wrong)  # type: ignore[arg-type]


def test_a_read_only_view_is_read_while_its_owner_changes(golden: Path) -> None:
    data = bytearray((golden / "blob/opencl.bin").read_bytes())
    view = memoryview(data).toreadonly()
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            data[8] ^= 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            tvmspec.verify(view)
    finally:
        done.set()
        thread.join()


def test_paths(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (golden / "blob/opencl.bin").read_bytes()
    monkeypatch.chdir(tmp_path)
    names = ["plain.bin", "-", "-x.bin", "--layout=0.7.bin", "with blank.bin", "\u00e9.bin", "\udcff.bin", "\n.bin"]
    for name in names:
        Path(name).write_bytes(data)
        for path in (name, Path(name)):
            assert tvmspec.verify(path).ok
            assert tvmspec.unpack(path).files
            assert tvmspec.convert(path) == data
            for output in ("-out.bin", "\udcfe.bin"):
                tvmspec.convert(path, output)
                assert Path(output).read_bytes() == data
                os.remove(output)
    assert sorted(os.listdir()) == sorted(names)
    # A name without an extension states no form.
    with pytest.raises(tvmspec.Error, match="does not state the form"):
        tvmspec.convert("plain.bin", "-")
    with pytest.raises(ValueError):
        tvmspec.verify("a\0b")


def test_a_pipe_is_opened_once(golden: Path, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = (golden / "blob/opencl.bin").read_bytes()

    def feed() -> None:
        # A reader that opens the pipe twice would end the write with a broken pipe, or wait for another writer.
        with open(path, "wb") as file:
            file.write(data)

    readers: list[Callable[[Path], Any]] = [tvmspec.verify, tvmspec.unpack, tvmspec.convert, tvmspec.dump]
    readers.append(lambda path: tvmspec.convert(path, tmp_path / "x.bin"))
    for read in readers:
        thread = threading.Thread(target=feed)
        thread.start()
        read(path)
        thread.join(10)
        assert not thread.is_alive()
    assert (tmp_path / "x.bin").read_bytes() == data


READERS: dict[str, Callable[[Any], Any]] = {
    "inspect": tvmspec.inspect,
    "verify": tvmspec.verify,
    "explain": tvmspec.explain,
    "dump": tvmspec.dump,
    "unpack": tvmspec.unpack,
    "convert": tvmspec.convert,
    "pack": tvmspec.pack,
    "load_params": tvmspec.load_params,
    "load": tvmspec.load,
    "known failures": lambda path: tvmspec.check({"blob.decode": len}, known=path),
    "library of a graph": lambda path: tvmspec.explain(
        Path(__file__).parents[2] / "golden/graph/metadata-last.json", lib=path
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_files_that_cannot_be_read(reader: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.bin"
    with pytest.raises(FileNotFoundError) as raised:
        READERS[reader](missing)
    assert raised.value.errno == errno.ENOENT and str(raised.value.filename) == str(missing)
    strange = os.path.join(tmp_path, "\udcff")
    with pytest.raises(FileNotFoundError) as raised:
        READERS[reader](strange)
    assert raised.value.filename == strange
    if reader == "load":
        return
    with pytest.raises(IsADirectoryError) as folder:
        READERS[reader](tmp_path)
    assert str(folder.value.filename) == str(tmp_path)
    if os.getuid() != 0:
        missing.touch(mode=0)
        with pytest.raises(PermissionError):
            READERS[reader](missing)


def test_files_that_cannot_be_written(golden: Path, tmp_path: Path) -> None:
    path = golden / "blob/opencl.bin"
    parts = tvmspec.unpack(path)
    (tmp_path / "file").touch()
    writers: list[Callable[[Path], Any]] = [
        lambda output: tvmspec.convert(path, output),
        lambda output: tvmspec.pack(parts, output),
        lambda output: tvmspec.inspect(path, html=output),
        lambda output: tvmspec.save_params(output, {"x": np.zeros(3, "float32")}),
    ]
    for write in writers:
        for name in ("x.bin", "x.c", "x.o", "x.so", "x.tar"):
            output = tmp_path / "no folder" / name
            with pytest.raises(FileNotFoundError) as missing:
                write(output)
            assert str(missing.value.filename) == str(output)
            with pytest.raises(NotADirectoryError):
                write(tmp_path / "file" / name)
        (tmp_path / "folder.bin").mkdir(exist_ok=True)
        with pytest.raises(IsADirectoryError):
            write(tmp_path / "folder.bin")
    with pytest.raises(OSError):
        tvmspec.save_params(tmp_path / "file/tensor-cache.json", {"x": np.zeros(3, "float32")})
    with pytest.raises(FileExistsError):
        parts.write(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.bin"]


def test_every_function_states_the_rule_and_the_file(golden: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.bin"
    broken.write_bytes((golden / "blob/opencl.bin").read_bytes()[:-1])
    expected = tvmspec.verify(broken).violations[0]
    for read in (
        lambda: tvmspec.unpack(broken),
        lambda: tvmspec.convert(broken),
        lambda: tvmspec.convert(broken, tmp_path / "x.bin"),
        lambda: tvmspec.convert(broken, tmp_path / "x.so"),
    ):
        with pytest.raises(tvmspec.Violation) as raised:
            read()
        violation = raised.value
        assert (violation.rule, violation.kind, violation.offset, violation.field) == (
            expected.rule,
            "truncated",
            expected.offset,
            expected.field,
        )
        assert violation.file == str(broken) and str(violation).startswith(f"{broken}: ")
    with pytest.raises(tvmspec.Violation) as raised:
        tvmspec.unpack(broken.read_bytes(), name="own name")
    assert raised.value.file == "own name"
    container = golden / "blob/containers/elf-cut.o"
    rule = tvmspec.verify(container).violations[0].rule
    for open in (tvmspec.unpack, tvmspec.convert):
        with pytest.raises(tvmspec.Violation) as raised:
            open(container)
        assert raised.value.rule == rule and raised.value.file == str(container)


SHORTENED = """
import os, sys, threading, time, tvmspec
path = sys.argv[1]
threading.Timer(0.1, os.truncate, (path, 4096)).start()
try:
    tvmspec.verify(path)
except OSError as error:
    print(type(error).__name__, error.filename == path, error)
"""


def test_a_file_that_becomes_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "large.params"
    tvmspec.save_params(path, {"mask": np.zeros(1, bool)})
    data = bytearray(path.read_bytes())
    size = 1 << 30
    # The extent, the number of bytes, and the byte itself are the end of the file.
    data[-17:-9] = data[-9:-1] = size.to_bytes(8, "little")
    path.write_bytes(data)
    os.truncate(path, len(data) - 1 + size)
    result = subprocess.run([sys.executable, "-c", SHORTENED, str(path)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("OSError True") and "shorter" in result.stdout
