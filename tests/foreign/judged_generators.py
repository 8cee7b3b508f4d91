"""What the code generators of this Python's TVM make of the cases of `target.generate`, and of the same modules with their other kinds.

    python judged_generators.py CASES GOLDEN OUT

OUT: a list of {"case", "kind", "answer": {"kind", "functions", "serializable", "repeatable"} | "rejected": text}.
"""

import json
import pathlib
import re
import sys

import tvm

NEW = hasattr(tvm, "tirx")
RELEASE = "0." + tvm.__version__.split(".")[1]


def text(case, golden):
    data = bytearray((golden / case["input"]["file"]).read_bytes())
    for at, put in case["input"].get("put", []):
        data[at : at + len(put) // 2] = bytes.fromhex(put)
    return data.decode()


def symbols(module, names):
    """Which of the names are found; of a kind that cannot run here, the names in its source."""
    try:
        return sorted(n for n in names if module.implements_function(n))
    except Exception:
        source = module.inspect_source() if NEW else module.get_source()
        return sorted(n for n in names if re.search(rf"\b{re.escape(n)}\b", source))


def generate(kind, graph, names):
    generator = tvm.get_global_func(f"target.build.{kind}", allow_missing=True)
    if generator is None:
        raise RuntimeError(f"target.build.{kind} is not enabled")
    target = "llvm -mtriple=x86_64-unknown-linux-gnu" if kind == "llvm" and not NEW else kind
    made = [generator(tvm.ir.load_json(graph), tvm.target.Target(target)) for _ in range(2)]
    sources = [m.inspect_source() if NEW else m.get_source() for m in made]
    return {
        "kind": made[0].kind if NEW else made[0].type_key,
        "functions": symbols(made[0], names),
        "serializable": bool(made[0].is_binary_serializable if isinstance(made[0].is_binary_serializable, bool) else made[0].is_binary_serializable()),
        "repeatable": sources[0] == sources[1],
    }


def main(cases, golden, out):
    golden = pathlib.Path(golden)
    verdicts = []
    for case in json.loads(pathlib.Path(cases).read_text()):
        if case["args"]["release"] != ("0.27" if NEW else "0.16"):
            continue
        # A limit is of this project alone (TGT-89): without one a release fills the memory of the machine.
        if case["rules"] == ["TGT-89"]:
            continue
        graph = text(case, golden)
        wanted = case["expect"].get("accept", {}).get("functions", [])
        # From 0.22 on a module of LLVM is asked for names without the prefix that their symbols have.
        names = sorted({*wanted, *(n.removeprefix("__tvm_ffi_") for n in wanted)})
        kinds = [case["args"]["target"]]
        if "accept" in case["expect"]:
            kinds += {"c": ["llvm"], "opencl": ["metal", "webgpu"]}[kinds[0]]
        for kind in kinds:
            verdict = {"case": case["id"], "kind": kind}
            try:
                verdict["answer"] = generate(kind, graph, names)
            except Exception as error:
                verdict["rejected"] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"
            verdicts.append(verdict)
    pathlib.Path(out).write_text(json.dumps(verdicts, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
