"""unpack, pack and convert."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tvmspec


def test_pack_restores_what_unpack_takes_apart(golden: Path, tmp_path: Path) -> None:
    data = (golden / "blob/opencl.bin").read_bytes()
    parts = tvmspec.unpack(data)
    assert tvmspec.pack(parts) == data
    parts.write(tmp_path)
    tvmspec.pack(tmp_path / "manifest.json", tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == data
    assert tvmspec.pack(tmp_path / "manifest.json") == data
    tvmspec.pack(parts, tmp_path / "memory.bin")
    assert (tmp_path / "memory.bin").read_bytes() == data
    with pytest.raises(TypeError, match="files"):
        tvmspec.pack(tmp_path / "manifest.json", files={})


@pytest.mark.parametrize("output", [None, "x.bin", "x.o"])
def test_manifests_in_memory(golden: Path, tmp_path: Path, output: "str | None") -> None:
    data = (golden / "blob/opencl.bin").read_bytes()
    parts = tvmspec.unpack(data)
    modules = [dict(module) for module in parts.manifest["modules"]]
    for module in modules:
        if "file" in module:
            module["payload"] = bytearray(parts.files[module.pop("file")])
    path = None if output is None else tmp_path / output

    def pack(manifest: Any, **options: Any) -> Any:
        return tvmspec.pack(manifest, path, **options) if path else tvmspec.pack(manifest, **options)

    made = pack({**parts.manifest, "modules": modules})
    if output is None:
        assert made == data
    elif output == "x.bin":
        assert made is None and (tmp_path / "x.bin").read_bytes() == data
    else:
        assert tvmspec.inspect(tmp_path / output).modules == tvmspec.inspect(data).modules
    for manifest, options, message in (
        ({"layout": "0.22", "modules": [{"kind": "cuda", "file": "missing"}]}, {}, "there is no file `missing`"),
        ({"layout": "0.3", "modules": [{"kind": "_lib"}]}, {}, "0.3"),
        ({"layout": "0.22", "modules": []}, {}, "no modules"),
        ({"layout": "0.22", "modules": [{"kind": "_lib", "cod": "x.c"}]}, {}, "cod"),
        (parts.manifest, {"files": parts.files, "order": "x"}, "order"),
        (parts.manifest, {"files": parts.files, "layout": "0.3"}, "layout"),
        (parts.manifest, {"files": parts.files, "release": "0.99"}, "0.99"),
    ):
        with pytest.raises(tvmspec.Error, match=message):
            pack(manifest, **options)
    with pytest.raises(TypeError):
        pack({"layout": "0.22", "modules": [{"kind": "_lib", "x": object()}]})
    with pytest.raises(TypeError):
        pack(parts.manifest, files={**parts.files, "x": 5})
    loop: dict[str, Any] = {"modules": []}
    loop["modules"].append(loop)
    with pytest.raises(ValueError):
        pack(loop)


def test_the_members_library_and_code_have_an_effect(golden: Path, tmp_path: Path) -> None:
    library = golden / "blob/containers/tree3-0.8.so"
    parts = tvmspec.unpack(library)
    whole = {**parts.manifest, "library": "lib.so"}
    files = {**parts.files, "lib.so": library.read_bytes()}
    assert tvmspec.pack(whole, files=files) == library.read_bytes()
    assert tvmspec.convert(library, whole=True) == library.read_bytes()
    with pytest.raises(tvmspec.Error, match=".bin"):
        tvmspec.pack({"layout": "0.22", "modules": [{"kind": "_lib", "code": "x.c"}]}, files={"x.c": b""})
    if shutil.which("cc"):
        code = {"layout": "0.22", "modules": [{"kind": "_lib", "code": "x.c"}]}
        tvmspec.pack(code, tmp_path / "x.so", files={"x.c": b"int __tvm_ffi_one(void) { return 1; }"})
        assert tvmspec.inspect(tmp_path / "x.so").form == "elf-shared"


def test_a_manifest_that_names_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text('{"layout": "0.22", "modules": [{"kind": "cuda", "file": "payload"}]}')
    with pytest.raises(FileNotFoundError) as raised:
        tvmspec.pack(path, tmp_path / "x.bin")
    assert raised.value.filename == str(tmp_path / "payload")


def test_unpacked_parts_in_a_folder(golden: Path, tmp_path: Path) -> None:
    first = tvmspec.unpack(golden / "blob/opencl.bin")
    other = tvmspec.unpack(golden / "blob/cuda.bin")
    assert first == tvmspec.unpack(golden / "blob/opencl.bin") and first != other
    assert len({first, tvmspec.unpack(golden / "blob/opencl.bin"), other}) == 2
    first.write(tmp_path)
    first.write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match="force"):
        other.write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    other.write(tmp_path, force=True)
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", *other.files}
    assert tvmspec.pack(tmp_path / "manifest.json") == (golden / "blob/cuda.bin").read_bytes()
    # Files of other folders stay, even if a manifest lists them.
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/manifest.json").write_text('{"modules": [{"kind": "x", "file": "../manifest.json"}]}')
    first.write(tmp_path / "sub", force=True)
    assert (tmp_path / "manifest.json").exists()


def test_convert(golden: Path, tmp_path: Path) -> None:
    path = golden / "blob/opencl.bin"
    older = tvmspec.convert(path, layout="0.7")
    assert tvmspec.inspect(older, layout="0.7").libraries[0].layout == "0.7"
    for output in ("older.bin", "older.o", "older.c", "older.tar"):
        tvmspec.convert(path, tmp_path / output, layout="0.7")
        assert tvmspec.unpack(tmp_path / output, layout="0.7") == tvmspec.unpack(older, layout="0.7")
    assert (tmp_path / "older.bin").read_bytes() == older
    tvmspec.convert(path, tmp_path / "older-0.6.c", layout="0.2", release="0.6")
    with pytest.raises(tvmspec.Error, match="release 0.6 writes layout 0.2"):
        tvmspec.convert(path, layout="0.7", release="0.6")


@pytest.mark.parametrize("output", [None, "x.bin"])
def test_wrong_options_write_no_file(golden: Path, tmp_path: Path, output: "str | None") -> None:
    path = golden / "blob/opencl.bin"
    target: Any = None if output is None else tmp_path / output
    options: list[dict[str, Any]] = [
        {"layout": "0.3"},
        {"from_layout": "x"},
        {"release": "99"},
        {"blob": 3},
        {"blob": -1},
        {"written_by": "0.1"},
    ]
    for wrong in options:
        with pytest.raises(ValueError) as raised:
            tvmspec.convert(path, target, **wrong)
        assert isinstance(raised.value, tvmspec.Error) and "error:" not in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", [None, "x.bin", "x.c"])
def test_a_layout_that_cannot_hold_the_content(golden: Path, tmp_path: Path, output: "str | None") -> None:
    target: Any = None if output is None else tmp_path / output
    with pytest.raises(tvmspec.Violation) as raised:
        tvmspec.convert(golden / "blob/layouts-nested.bin", target, layout="0.2")
    assert raised.value.rule and str(golden / "blob/layouts-nested.bin") in str(raised.value.file)
    assert not list(tmp_path.iterdir())


def test_bytes_that_are_left_out_are_a_warning(golden: Path, tmp_path: Path) -> None:
    path = golden / "blob/bytes-behind.bin"
    with pytest.warns(UserWarning, match="left out") as first:
        tvmspec.convert(path)
    with pytest.warns(UserWarning, match="left out") as second:
        tvmspec.convert(path, tmp_path / "x.bin")
    with pytest.warns(UserWarning, match="left out") as third:
        tvmspec.unpack(path)
    for caught in (first, second, third):
        # The warning names the line that called the function.
        assert caught[0].filename == __file__ and str(path) in str(caught[0].message)


SIGNALS = """
import os, signal, subprocess, sys, threading, time
import tvmspec

source, folder = sys.argv[1:]
os.chdir(folder)
parts = tvmspec.unpack(source)

def tasks():
    return len(os.listdir("/proc/self/task"))

tvmspec.pack(parts, "first.so")
before = tasks()
tvmspec.pack(parts, "second.so")
assert tasks() == before, "a thread stays"

child = subprocess.Popen(["sleep", "60"])
os.environ["CC"] = "./slow"
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    tvmspec.pack(parts, "third.so")
    sys.exit("not interrupted")
except KeyboardInterrupt:
    print("during")
assert child.poll() is None, "the child is dead"
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
    sys.exit("not interrupted")
except KeyboardInterrupt:
    print("after")
assert child.poll() is None, "the child is dead"
child.kill()
child.wait()
orphan = int(subprocess.check_output(["sh", "-c", "sleep 60 >/dev/null & echo $!"]))
parent = open(f"/proc/{orphan}/stat").read().rsplit(")", 1)[1].split()[1]
assert int(parent) != os.getpid(), "the process adopts orphans"
os.kill(orphan, signal.SIGKILL)
print(sorted(os.listdir()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("cc"), reason="needs /proc and a compiler")
def test_signals_belong_to_the_interpreter(golden: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\nsleep 1.5\nexec cc "$@"\n')
    slow.chmod(0o755)
    words = [sys.executable, "-c", SIGNALS, str(golden / "blob/cuda.bin"), str(tmp_path)]
    process = subprocess.run(words, capture_output=True, text=True, start_new_session=True, timeout=60)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("during\nafter\n")
    assert ".tvmspec" not in process.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("cc"), reason="needs a compiler")
def test_ctrl_c_in_a_terminal_also_ends_the_compiler(golden: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\necho $$ >started\nexec sleep 60\n')
    slow.chmod(0o755)
    code = "import sys, tvmspec; tvmspec.pack(tvmspec.unpack(sys.argv[1]), 'x.so')"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(golden / "blob/cuda.bin")],
        cwd=tmp_path,
        env={**os.environ, "CC": "./slow"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if (tmp_path / "started").exists():
            break
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
    # A terminal sends the signal to the whole group.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert errors.rstrip().endswith("KeyboardInterrupt") and process.returncode == -signal.SIGINT
    assert sorted(os.listdir(tmp_path)) == ["slow", "started"]
