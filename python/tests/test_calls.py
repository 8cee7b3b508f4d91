"""load, run, and calls with arrays."""

from __future__ import annotations

import platform
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tvmspec

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the goldens are compiled for x86-64")


@pytest.mark.parametrize(("library", "name"), [("host-0.27.so", "main"), ("host-0.8.so", "add1")])
def test_compiled_functions_take_arrays(golden: Path, library: str, name: str) -> None:
    add_one = tvmspec.load(golden / "module" / library)[name]
    x, y = np.ones(12, "float32"), np.zeros(12, "float32")
    assert add_one(x, y) is None
    np.testing.assert_array_equal(y, np.full(12, 2, "float32"))
    source, target = tvmspec.tensor(x), tvmspec.tensor(np.zeros(12, "float32"))
    add_one(source, target)
    np.testing.assert_array_equal(target.numpy(), y)
    np.testing.assert_array_equal(np.from_dlpack(target), y)
    assert target.shape == (12,) and repr(target) == "<Tensor float32[12]>"


class Exported:
    """An array of a library that is not numpy."""

    def __init__(self, array: np.ndarray) -> None:  # type: ignore[type-arg]
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_arrays_of_other_libraries(golden: Path) -> None:
    main = tvmspec.load(golden / "module/host-0.27.so")["main"]
    x, y = np.ones(12, "float32"), np.zeros(12, "float32")
    main(Exported(x), Exported(y))
    assert y[0] == 2


def test_wrong_arguments_raise(golden: Path) -> None:
    module = tvmspec.load(golden / "module/host-0.27.so")
    main = module["main"]
    with pytest.raises(Exception) as raised:
        main(np.ones(12, "float32"))
    assert isinstance(raised.value, (TypeError, RuntimeError, ValueError))
    with pytest.raises(Exception):
        main(np.ones(12, "int8"), np.zeros(12, "float32"))
    with pytest.raises(TypeError):
        main(object(), None)
    with pytest.raises(TypeError):
        main(np.ones(12, ">f4"), np.zeros(12, "float32"))
    with pytest.raises(KeyError):
        module["missing"]
    assert "main" in module and "missing" not in module
    with pytest.raises(FileNotFoundError):
        tvmspec.load("no-such-library.so")


def test_views_are_passed_with_their_strides(golden: Path) -> None:
    main = tvmspec.load(golden / "module/host-0.27.so")["main"]
    wide = np.arange(24, dtype="float32")
    out = np.zeros(12, "float32")
    try:
        main(wide[::2], out)
    except Exception:
        # The function was compiled for compact arrays, and says so.
        assert not out.any()
    else:
        np.testing.assert_array_equal(out, wide[::2] + 1)


def test_models_have_the_outputs_of_tvm(golden: Path) -> None:
    ran = 0
    for path in sorted([*golden.glob("graph/models/*/*.io.npz"), *golden.glob("vm/*.io.npz")]):
        arrays = dict(np.load(path))
        inputs = {name[3:]: array for name, array in arrays.items() if name.startswith("in_")}
        expected = [array for name, array in sorted(arrays.items()) if name.startswith("out_")]
        library = str(path).replace(".io.npz", ".so")
        if not inputs or not Path(library).exists():
            # It has several calls, or the parts of a model.
            continue
        outputs = [output.numpy() for output in tvmspec.run(library, inputs)]
        assert len(outputs) == len(expected), path
        for output, array in zip(outputs, expected):
            np.testing.assert_allclose(output.reshape(array.shape).astype("float64"), array.astype("float64"), rtol=1e-5)
        with pytest.raises(ValueError, match="missing input"):
            tvmspec.run(library, {})
        ran += 1
    print(f"{ran} models have the outputs of TVM")
    assert ran >= 8
    arrays = np.load(golden / "vm/branches.io.npz")
    for case in ("then", "else"):
        pair = [arrays[f"{case}/in/pair.0"], arrays[f"{case}/in/pair.1"]]
        outputs = tvmspec.run(golden / "vm/branches.so", {"flag": arrays[f"{case}/in/flag"], "pair": pair})
        for place, output in enumerate(outputs):
            np.testing.assert_allclose(output.numpy(), arrays[f"{case}/out/{place}"], rtol=1e-5)


def test_references_do_not_leak(golden: Path) -> None:
    import sys

    main = tvmspec.load(golden / "module/host-0.27.so")["main"]
    x, y = np.ones(12, "float32"), np.zeros(12, "float32")
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(1000):
        main(x, y)
        main(Exported(x), y)
    del _
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before


def test_other_threads_run_during_a_command(golden: Path, tmp_path: Path) -> None:
    tvmspec.save_params(tmp_path / "many.params", {f"p{i}": np.zeros(4, "float32") for i in range(20000)})
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    for _ in range(5):
        tvmspec._tvmspec.report("verify", tmp_path / "many.params", None, None)
    end = time.perf_counter()
    done.set()
    thread.join()
    gaps = [later - earlier for earlier, later in zip(ticks, ticks[1:]) if start < earlier < end]
    assert gaps and max(gaps) < (end - start) / 2
