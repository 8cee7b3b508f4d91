"""Chapter tensor: records and parameter files."""

import base64
import math
import struct

import grammar
from reader import PRODUCTIONS, Reader, Reject, Unsupported, b64, data_of, naming, string, u64

RECORD, LIST = 0xDD5E40F096B4A13F, 0xF7E58D4F05049CB7
NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
SMALL = dict(
    enumerate(
        "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn".split(),
        7,
    )
)


def dtype_text(code, bits, lanes):
    """The text of 0.27 where it says everything, otherwise the three numbers."""
    signed = lanes - 65536 if lanes > 32767 else lanes
    tail = "" if signed == 1 else f"x{signed}" if signed > 1 else f"xvscalex{-signed}"
    if lanes == 0 or signed == -1:
        return [code, bits, lanes]
    if code in NAMES and bits:
        return f"{NAMES[code]}{bits}{tail}"
    if code == 3 and bits == 64 and lanes == 1:
        return "handle"
    if code == 6 and bits:
        return f"bool{'' if bits == 8 else bits}{tail}"
    width = {code: int(name[5]) for code, name in SMALL.items()}
    if code in SMALL and bits == width[code] and signed > 0:
        return SMALL[code] + tail
    return [code, bits, lanes]


def dtype_of(value):
    if isinstance(value, list):
        return value
    base, lanes = value, 1
    if "xvscalex" in value:
        base, count = value.split("xvscalex")
        lanes = 65536 - int(count)
    else:
        head, cross, count = value.rpartition("x")
        if cross and count.isdigit() and head:
            base, lanes = head, int(count)
    for code, name in SMALL.items():
        if base == name:
            return [code, int(name[5]), lanes]
    if base == "handle":
        return [3, 64, lanes]
    for code, name in [(6, "bool"), *NAMES.items()]:
        digits = base[len(name) :]
        if base.startswith(name) and (digits.isdigit() or (code == 6 and not digits)):
            return [code, int(digits or 8), lanes]
    raise Unsupported(f"dtype {value}")


def element_size(sizing, bits, lanes):
    if sizing == "0.2":
        return (bits * lanes + 7) // 8
    return bits // 8 if sizing == "0.4" else (bits + 7) // 8


def sizing_of(release):
    minor = int(release.split(".")[1])
    return "0.2" if minor <= 3 else "0.4" if minor <= 6 else "0.7"


def record_read(reader, sizing):
    start = reader.at
    if reader.u64("magic") != RECORD:
        raise Reject("not a tensor", offset=start)
    reserved = reader.u64("reserved")
    device = [reader.number("i"), reader.number("i")]
    if device[0] != 1 and sizing != "0.2":
        raise Reject("the tensor is not on the CPU", offset=start + 16)
    ndim = reader.number("i")
    if ndim < 0:
        raise Reject("ndim is negative", offset=start + 24)
    if ndim > max(reader.left() - 4, 0) // 8:
        raise Reject("ndim promises too much", "truncated", start + 24)
    code, bits, lanes = reader.number("B"), reader.number("B"), reader.number("H")
    if bits == 0 or lanes == 0:
        raise Reject("an element of nothing", offset=start + 28, part="dtype")
    shape = [reader.number("q") for _ in range(ndim)]
    for place, extent in enumerate(shape):
        if extent < 0:
            raise Reject("a dimension is negative", offset=start + 32 + 8 * place)
    size = math.prod(shape) * element_size(sizing, bits, lanes)
    if size >= 1 << 63:
        raise Reject("the size does not fit", "limit", start + 32, part="shape")
    if reader.number("q") != size:
        raise Reject(f"data_byte_size is not {size}", offset=start + 32 + 8 * ndim)
    data = reader.take(size, "data")
    tensor = {"dtype": dtype_text(code, bits, lanes), "shape": shape, "device": device, "data": b64(data)}
    return {**tensor, "reserved": reserved} if reserved else tensor


def record_write(tensor, sizing):
    code, bits, lanes = dtype_of(tensor["dtype"])
    data, shape = base64.b64decode(tensor["data"]), tensor["shape"]
    if any(extent < 0 for extent in shape):
        raise Reject("a dimension is negative")
    if bits == 0 or lanes == 0:
        raise Reject("an element of nothing", "type")
    size = math.prod(shape) * element_size(sizing, bits, lanes)
    if size >= 1 << 63:
        raise Reject("the size does not fit", "limit")
    if size != len(data):
        raise Reject(f"the data are not {size} bytes")
    head = struct.pack("<QQii", RECORD, tensor.get("reserved", 0), *tensor["device"])
    head += struct.pack("<iBBH", len(shape), code, bits, lanes)
    return head + struct.pack(f"<{len(shape)}qq", *shape, len(data)) + data


def params_read(data, sizing):
    reader = Reader(data)
    if reader.u64("magic") != LIST:
        raise Reject("not a parameter file", offset=0)
    reserved, names = reader.u64("reserved"), reader.texts()
    if reader.u64("count") != len(names):
        raise Reject("not as many tensors as names", offset=reader.at - 8)
    reader.at -= 8
    reader.count(40, "tensors")
    tensors = [{"name": name, **record_read(reader, sizing)} for name in names]
    return {"tensors": tensors, **({"reserved": reserved} if reserved else {})}


def tensor_decode(args):
    form, data = args.get("form", "params"), data_of(args)
    release = args.get("release")
    span = lambda sizing: (grammar.minor(sizing), grammar.minor(sizing))
    if form == "tensor":
        sizing = sizing_of(release) if release else "0.7"
        return naming("tensor", None, span(sizing), data, lambda: record_read(Reader(data), sizing))
    if form in ("dtype", "device"):
        # Their text, or their own form, is not done here.
        _, cut = grammar.walk(PRODUCTIONS, form, None, span("0.7"), data)
        if cut is not None:
            raise Reject("it is cut off", "truncated", cut.offset, f"{form}.{cut.field}")
    if form != "params":
        raise Unsupported(f"form {form}")
    params = lambda sizing: naming("params", None, span(sizing), data, lambda: params_read(data, sizing))
    if release:
        return params(sizing_of(release))
    first = None
    for sizing in ["0.7", "0.4", "0.2"]:
        try:
            return params(sizing)
        except Reject as broken:
            first = first or broken
    raise first


def tensor_encode(args):
    form, value = args.get("form", "params"), args["value"]
    # Without a release any of the three that sizes all of the tensors (TEN-45), the newest first.
    sizings = [sizing_of(args["release"])] if "release" in args else ["0.7"] if form == "tensor" else ["0.7", "0.4", "0.2"]
    first = None
    for sizing in sizings:
        try:
            return tensor_write(form, value, sizing)
        except Reject as broken:
            first = first or broken
    raise first


def tensor_write(form, value, sizing):
    if form == "tensor":
        return b64(record_write(value, sizing))
    if form != "params":
        raise Unsupported(f"form {form}")
    names = b"".join(string(tensor["name"]) for tensor in value["tensors"])
    count = u64(len(value["tensors"]))
    records = b"".join(record_write(tensor, sizing) for tensor in value["tensors"])
    return b64(u64(LIST) + u64(value.get("reserved", 0)) + count + names + count + records)
