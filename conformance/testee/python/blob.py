"""Chapter blob: the library binary. Layouts before 0.22 do not frame payloads, so each kind's grammar finds its end."""

import base64

from import_tree import tree_check, tree_read
from payload import SPANS
from reader import Reader, Reject, Unsupported, b64, data_of, naming, string, u64, words
from tensor import record_read


def functions(reader, layout):
    def one():
        reader.text()
        reader.text()
        reader.vector(4, lambda: reader.take(4, "dtype"))
        reader.texts()
        if layout == "0.21":
            reader.vector(4, lambda: reader.take(4, "tag"))

    reader.vector(40 if layout == "0.21" else 32, one)


def skip_device(reader, layout):
    reader.text()
    functions(reader, layout)
    reader.bytes()


def skip_vulkan(reader, layout):
    reader.text()
    functions(reader, layout)

    def shader():
        reader.text()
        reader.number("I")
        reader.vector(4, lambda: reader.number("I"))

    reader.vector(20, shader)


def skip_webgpu(reader, layout):
    functions(reader, layout)
    reader.vector(16, lambda: (reader.text(), reader.text()))


def skip_constants(reader, _layout):
    reader.texts()
    for _ in range(reader.count(8)):
        record_read(reader, "0.7")
    reader.texts()
    for _ in range(reader.count(8)):
        reader.texts()


def skip_factory(reader, _layout, graph=True):
    if graph:
        reader.text()
    start = reader.at
    tensors = reader.u64()
    if len(reader.texts()) != tensors:
        raise Reject("not as many names as tensors", offset=start)
    for _ in range(tensors):
        record_read(reader, "0.7")
    reader.text()


def skip_c(reader, _layout):
    for read in (reader.text, reader.text, reader.texts, reader.texts):
        read()


def skip_json_runtime(reader, _layout):
    for read in (reader.text, reader.text, reader.texts):
        read()


def skip_texts(count):
    return lambda reader, _layout: [reader.bytes() for _ in range(count)]


def skip_simulator(reader, _layout):
    """PAY-98: 0.17 has a binary where 0.16 has the kind of the next module."""
    skip_texts(2)(reader, _layout)
    at = reader.at
    try:
        text = reader.text()
        base64.b64decode(text, validate=True)
        if text in GRAMMAR:
            reader.at = at
    except (Reject, ValueError):
        reader.at = at


GRAMMAR = {
    "metadata": skip_constants,
    "const_loader": skip_constants,
    "metadata_module": skip_texts(0),
    "GraphRuntimeFactory": skip_factory,
    "GraphExecutorFactory": skip_factory,
    "AotExecutorFactory": lambda reader, layout: skip_factory(reader, layout, graph=False),
    "VMExecutable": skip_texts(1),
    "relax.Executable": skip_texts(1),
    "relax.VMExecutable": skip_texts(1),
    "vulkan": skip_vulkan,
    "webgpu": skip_webgpu,
    "c": skip_c,
    "static_library": lambda reader, _layout: (reader.bytes(), reader.texts()),
    "coreml": skip_texts(2),
    "torch": skip_texts(2),
    "mrvl_sim": skip_simulator,
    **{kind: skip_device for kind in "cuda opencl metal hip hsaco sdaccel aocl opengl hexagon".split()},
    **{
        kind: skip_json_runtime
        for kind in "dnnl_json arm_compute_lib tensorrt bnns_json clml cublas_json cudnn_json msc_tensorrt nnapi hipblas_json".split()
    },
}


def blob_body(data):
    reader = Reader(data)
    size = reader.u64("nbytes")
    if size > reader.left():
        raise Reject("the header promises more than there is", "truncated", 0, "nbytes")
    return Reader(data[: 8 + size]), reader


def kind_of(reader, modules):
    start = reader.at
    kind = reader.text("kind")
    if not kind or "\0" in kind:
        raise Reject("a kind is a name", offset=start)
    if kind == "_lib" and {"kind": kind} in modules:
        raise Reject("there are two host libraries", "duplicate", start)
    return kind


def blob_decode(args):
    layout, data = args.get("layout"), data_of(args)
    if layout is None:
        raise Unsupported("we do not detect layouts")
    return naming("blob", None, SPANS[layout], data, lambda: blob_read(data, layout))


def blob_read(data, layout):
    reader, _ = blob_body(data)
    reader.at = 8
    if layout == "0.22":
        return framed_blob(reader)
    tree, modules = None, []
    for index in range(reader.count(8)):
        place, entry = reader.at, f"entry[{index}]"
        if not reader.left():
            raise Reject("an entry is missing", "truncated", place, entry)
        kind = kind_of(reader, modules)
        if tree is not None:
            twice = kind == "_import_tree"
            raise Reject("an entry behind the import tree", *(("duplicate", place, entry) if twice else ("malformed", tree_key, tree_entry)))
        start = reader.at
        if kind in ("_lib", "_import_tree") and layout == "0.2":
            raise Reject(f"layout 0.2 has no {kind}", "unknown-kind", place)
        if kind == "_import_tree":
            tree, tree_key, tree_at, tree_entry = tree_read(reader), place, start, entry
            continue
        if kind == "_lib":
            modules.append({"kind": kind})
            continue
        if kind not in GRAMMAR or (kind == "metal" and layout == "0.21"):
            raise Unsupported(f"the payload of {kind} in layout {layout}")
        GRAMMAR[kind](reader, layout)
        modules.append({"kind": kind, "payload": b64(reader.data[start : reader.at])})
    if tree is not None:
        tree_check(tree["indptr"], tree["indices"], len(modules), tree_at)
    elif modules and layout != "0.2":
        raise Reject("entries without an import tree", "missing", 8)
    return {"layout": layout, "modules": modules, "import_tree": tree}


def framed_blob(reader):
    start = reader.at
    tree, modules = tree_read(reader), []
    tree_check(tree["indptr"], tree["indices"], at=start)
    for index in range(len(tree["indptr"]) - 1):
        if not reader.left():
            raise Reject("a module is missing", "truncated", reader.at, f"module[{index}]")
        kind = kind_of(reader, modules)
        modules.append({"kind": kind} if kind == "_lib" else {"kind": kind, "payload": b64(reader.bytes())})
    return {"layout": "0.22", "modules": modules, "import_tree": tree}


def blob_encode(args):
    value = args["value"]
    layout = args.get("layout") or value["layout"]
    if value["layout"] != layout:
        raise Unsupported("we do not convert")
    tree, body = value["import_tree"], b""
    if tree and layout == "0.2":
        raise Reject("layout 0.2 has no import tree", "unsupported")
    if not tree and layout == "0.22":
        raise Reject("layout 0.22 begins with the import tree", "missing")
    if layout == "0.22" and len(tree["indptr"]) != len(value["modules"]) + 1:
        raise Reject("layout 0.22 has a row for each module", "malformed")
    if tree:
        tree_check(tree["indptr"], tree["indices"])
    framed = string if layout == "0.22" else lambda payload: payload
    for module in value["modules"]:
        if layout == "0.2" and module["kind"] == "_lib":
            raise Reject("the host library of layout 0.2 has no entry", "unsupported")
        body += string(module["kind"])
        if layout != "0.22" and module["kind"] not in (*GRAMMAR, "_lib"):
            raise Reject(f"the end of {module['kind']} cannot be found", "unsupported")
        if ("payload" in module) == (module["kind"] == "_lib"):
            raise Reject("a payload is what every module but `_lib` has", "malformed" if "payload" in module else "missing")
        if "payload" in module:
            body += framed(base64.b64decode(module["payload"]))
    rows = words(tree["indptr"]) + words(tree["indices"]) if tree else b""
    if layout == "0.22":
        body = rows + body
    else:
        body = u64(len(value["modules"]) + bool(tree)) + body
        body += string("_import_tree") + rows if tree else b""
    return b64(u64(len(body)) + body)
