"""Chapter payload for the testee beside it: what each module kind stores, decoded. Of the executables of both VMs and of StackVM
files only what is cut off is rejected, by their grammar; they and encoding are answered with "unsupported" otherwise."""

import base64

import grammar
from reader import PRODUCTIONS, Reader, Reject, Unsupported, b64
from tensor import dtype_text, record_read

SPANS = {"0.2": (2, 6), "0.7": (7, 20), "0.21": (21, 21), "0.22": (22, 99)}


def code(raw, text_name="source", data_name="data"):
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return {data_name: b64(raw)}
    return {data_name: b64(raw)} if "\0" in text else {text_name: text}


def dtype(reader):
    return dtype_text(reader.number("B"), reader.number("B"), reader.number("H"))


def placed(reader):
    """A vector of strings, each with its offset."""
    return reader.vector(8, lambda: (reader.at, reader.text()))


def axis(tag, start):
    """PAY-05: a reader takes the distance from `x` as an index."""
    head, dot, tail = tag.partition(".")
    if dot and head in ("blockIdx", "threadIdx", "clusterCtaIdx", "preferredClusterCtaIdx") and tail not in list("xyz"):
        raise Reject(f"{tag} is no thread axis", "malformed", start)
    return tag


def functions(reader, layout):
    def one():
        function = {"name": reader.text()}
        inner = reader.text()
        if inner:
            function["info_name"] = inner
        function["arg_types"] = reader.vector(4, lambda: dtype(reader))
        function["launch_param_tags"] = [axis(tag, start) for start, tag in placed(reader)]
        if layout in ("0.21", "0.22"):
            tags = reader.vector(4, lambda: reader.number("i"))
            if tags:
                function["arg_extra_tags"] = tags
        return function

    listed = reader.vector(40 if layout in ("0.21", "0.22") else 32, one)
    if reader.is_old and any("info_name" in function for function in listed):
        raise Reject("an old form with a new name", "malformed", 0)
    return {"functions": listed}


def word(reader):
    start, text = reader.at, reader.text()
    if not text or any(not " " < letter < "\x7f" for letter in text):
        raise Reject("a format is a word", "malformed", start)
    return {"format": text}


def version(reader):
    start, text = reader.at, reader.text()
    if not text or set(text) - set("0123456789."):
        raise Reject("a version is digits and dots", "malformed", start)
    return {"version": text}


def kernels(reader):
    return {"kernels": reader.vector(16, lambda: {"name": reader.text(), **code(reader.bytes())})}


def shader(reader):
    flags = reader.number("I")
    return {"flags": flags, "spirv": b64(reader.take(4 * reader.count(4), "spirv"))}


def framed(reader):
    start, window = reader.at, Reader(reader.bytes())
    value = shader(window)
    if window.left():
        raise Reject("a shader fills its string", "trailing", start + 8 + window.at)
    return value


def shaders(reader, one):
    return {"shaders": reader.vector(28 if one is framed else 20, lambda: {"name": reader.text(), **one(reader)})}


def tensors(reader, names):
    start = reader.at
    if reader.u64() != len(names):
        raise Reject("not as many tensors as names", "malformed", start)
    return [{"name": name, **record_read(reader, "0.7")} for name in names]


def constants(reader, complete):
    names = []
    for start, name in placed(reader):
        if name in names:
            raise Reject("a variable is stored once", "duplicate", start)
        names.append(name)
    variables = tensors(reader, names)
    listing, symbols = reader.at, reader.texts()
    start = reader.at
    if reader.u64() != len(symbols):
        raise Reject("not as many lists as functions", "malformed", start)
    listed = [{"name": name, "variables": reader.texts()} for name in symbols]
    if complete and any(name not in names for symbol in listed for name in symbol["variables"]):
        raise Reject("a listed variable is not stored", "missing", listing)
    return {"variables": variables, "symbols": listed}


def params(reader):
    # The count comes before the names here, and behind them in a parameter file.
    start, count, names = reader.at, reader.u64(), reader.texts()
    if count != len(names):
        raise Reject("not as many names as tensors", "malformed", start)
    return {"params": [{"name": name, **record_read(reader, "0.7")} for name in names]}


def network(reader, sizes):
    value = {"name": reader.text(), "compiled": b64(reader.bytes())}
    for name in ("input", "output"):
        start = reader.at
        value[name + "s"] = reader.vector(4, lambda: reader.number("I"))
        if sizes:
            value[name + "_sizes"] = [reader.number("I") for _ in value[name + "s"]]
        if not value[name + "s"]:
            raise Reject(f"a network has {name}s", "missing", start)
    return value


def fields(*plan):
    """Named fields in file order: `t` text, `b` bytes, `l` list of texts, `i` integer."""
    readers = {
        "t": lambda reader: reader.text(),
        "b": lambda reader: b64(reader.bytes()),
        "l": lambda reader: reader.texts(),
        "i": lambda reader: reader.number("i"),
    }

    def read(reader, _layout):
        return {name: readers[how](reader) for how, name in (item.split(":") for item in plan)}

    return read


def device(reader, layout):
    return {**word(reader), **functions(reader, layout), **code(reader.bytes())}


def older(read):
    """A form that no release after 0.23 writes: its functions have empty names of their own (PAY-09)."""

    def held(reader, layout):
        reader.is_old = layout == "0.22"
        return read(reader, layout)

    return held


def metal_13(reader, layout):
    return {**version(reader), **kernels(reader), **functions(reader, layout), **word(reader)}


def metal_24(reader, layout):
    return {**word(reader), **functions(reader, layout), **kernels(reader)}


def vulkan(one):
    return lambda reader, layout: {**word(reader), **functions(reader, layout), **shaders(reader, one)}


def spirv(reader, layout):
    return {**functions(reader, layout), **shaders(reader, shader)}


def networks(sizes):
    return lambda reader, _layout: {"networks": [network(reader, sizes) for _ in range(reader.count(32))]}


json_runtime = fields("t:symbol", "t:graph_json", "l:const_names")
ONE_FORM = {
    "webgpu": lambda reader, layout: {**functions(reader, layout), **kernels(reader)},
    "opengl": lambda reader, layout: {**word(reader), **functions(reader, layout), "shaders_json": reader.text()},
    "c": lambda reader, layout: {**code(reader.bytes()), **fields("t:format", "l:function_names", "l:const_vars")(reader, layout)},
    "static_library": fields("b:object", "l:function_names"),
    "metadata": lambda reader, _layout: constants(reader, complete=False),
    "const_loader": lambda reader, _layout: constants(reader, complete=True),
    "metadata_module": lambda _reader, _layout: {},
    "AotExecutorFactory": lambda reader, _layout: {**params(reader), "module_name": reader.text()},
    "examplejson": fields("t:graph_json"),
    "coreml": fields("t:symbol", "b:model"),
    "VitisAIRuntime": fields("b:runtime_module", "t:export_path", "t:symbol", "l:const_names"),
    "torch": fields("t:symbol", "b:archive"),
    "mrvl_hw": fields("t:symbol", "t:nodes_json", "b:binary", "i:inputs", "i:outputs", "i:batches"),
}
for kind in ("cuda", "hip", "hsaco", "hexagon", "hex", "nki", "sdaccel", "aocl"):
    ONE_FORM[kind] = device
for kind in ("GraphRuntimeFactory", "GraphExecutorFactory"):
    ONE_FORM[kind] = lambda reader, _layout: {"graph_json": reader.text(), **params(reader), "module_name": reader.text()}
for kind in "dnnl_json arm_compute_lib tensorrt bnns_json clml cublas_json cudnn_json msc_tensorrt nnapi hipblas_json example_npu_json verilator".split():
    ONE_FORM[kind] = json_runtime


def simulator(reader, layout):
    """PAY-98: a kind that is where the binary would be is that of the next module."""
    value = fields("t:symbol", "t:nodes_json")(reader, layout)
    start, value["binary"] = reader.at, reader.text()
    try:
        base64.b64decode(value["binary"], validate=True)
    except ValueError as error:
        raise Reject("the binary is base64", "malformed", start) from error
    if value["binary"] in ONE_FORM or value["binary"] in SEVERAL or value["binary"] in ELSEWHERE:
        raise Reject("the binary is the name of a kind", "malformed", start)
    return value


# Newest first, each with the layouts that store it.
later, middle = ("0.22",), ("0.7", "0.21", "0.22")
everywhere = ("0.2", *middle)
SEVERAL = {
    "opencl": [("0.2", everywhere, device), ("0.13", middle, older(spirv))],
    "metal": [("0.24", later, metal_24), ("0.13", middle, older(metal_13)), ("0.2", everywhere, older(device))],
    "vulkan": [("0.24", later, vulkan(framed)), ("0.3", everywhere, older(vulkan(shader)))],
    "mrvl_sim": [("0.17", middle, simulator), ("0.16", ("0.7",), fields("t:symbol", "t:nodes_json"))],
    "ethos-n": [("0.10", ("0.7",), networks(True)), ("0.7", ("0.7",), networks(False))],
}
FIRST_AFTER_0_6 = {kind for kind in ONE_FORM if kind not in ("cuda", "hip", "hsaco", "sdaccel", "aocl", "opengl", "examplejson")}
ELSEWHERE = ("VMExecutable", "relax.Executable", "relax.VMExecutable", "stackvm")


def named(kind, form, layout, data, broken):
    return grammar.field_at(PRODUCTIONS, kind, form, SPANS[layout], data, broken.offset, broken.part)


def elsewhere_cut(data, kind, layout):
    if PRODUCTIONS.forms(kind, SPANS[layout]):
        _, cut = grammar.walk(PRODUCTIONS, kind, None, SPANS[layout], data)
        if cut is not None:
            raise Reject(f"{cut.field} does not fit", "truncated", cut.offset, cut.field)
    raise Unsupported(f"payloads of {kind}")


def payload_decode(args):
    data, kind, layout = base64.b64decode(args["data"], validate=True), args["kind"], args["layout"]
    if kind in ELSEWHERE:
        elsewhere_cut(data, kind, layout)
    if kind in ONE_FORM and not (layout == "0.2" and kind in FIRST_AFTER_0_6):
        forms = [(None, ONE_FORM[kind])]
    else:
        forms = [(name, read) for name, layouts, read in SEVERAL.get(kind, []) if layout in layouts]
    if not forms:
        if layout == "0.22":
            return {"kind": kind, "opaque": b64(data)}
        raise Reject(f"the end of a {kind} is not known", "unknown-kind", 0, "payload")
    whole, furthest = None, None
    for name, read in forms:
        reader = Reader(data)
        try:
            value = {"kind": kind, **({"form": name} if name else {}), **read(reader, layout)}
        except Reject as broken:
            broken.field = named(kind, name, layout, data, broken)
            if furthest is None or broken.offset > furthest.offset:
                furthest = broken
            continue
        if not reader.left():
            return value
        whole = whole or (value, reader.at)
    if whole is None:
        raise furthest
    if layout != "0.22":
        raise Reject("bytes behind the payload", "trailing", whole[1], "")
    return whole[0]
