#!/usr/bin/env python3
"""A testee for `tvmspec check` in one file: pure Python 3, no dependency.

    tvmspec check --impl "exec:python3 conformance/testee/python/testee.py"

It is a minimal testee: the exec protocol (`tvmspec check --help-exec`) and the operations of chapter import_tree. Every other
request gets the answer "unsupported". It was written from the text in spec/ and shares no code with src/. A rejection states its
kind and offset, and is judged by both. It omits the rule and the field.
"""

import base64
import json
import struct
import sys


class Reject(Exception):
    """Error for input that breaks a rule."""

    def __init__(self, message, kind="malformed", offset=None):
        super().__init__(message)
        self.kind, self.offset = kind, offset


# The protocol: one JSON object per line, each answered by one line.


def main():
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(request)}), flush=True)


def answer(request):
    operations = {"import_tree.decode": tree_decode, "import_tree.encode": tree_encode, "import_tree.order": tree_order}
    op = request["op"]
    if op == "hello":
        return {"ok": {"name": "tvmspec-python-testee", "version": "1", "ops": list(operations)}}
    if op not in operations:
        return {"unsupported": f"no operation {op}"}
    try:
        return {"ok": operations[op](request.get("args", {}))}
    except Reject as broken:
        stated = {"message": str(broken), "kind": broken.kind, "offset": broken.offset}
        return {"reject": {key: value for key, value in stated.items() if value is not None}}


# Chapter import_tree: compressed sparse rows, and the order of modules.


class Reader:
    """Reader of bytes at a position."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def u64(self):
        left = len(self.data) - self.at
        if left < 8:
            raise Reject(f"a number needs 8 bytes, {left} remain", "truncated", self.at)
        self.at += 8
        return struct.unpack_from("<Q", self.data, self.at - 8)[0]

    def words(self):
        """Reads a vector of u64. The count is checked before memory is allocated."""
        start, count = self.at, self.u64()
        if count * 8 > len(self.data) - self.at:
            raise Reject(f"the count promises {count} elements", "truncated", start)
        return [self.u64() for _ in range(count)]


def words(values):
    return struct.pack(f"<{len(values) + 1}Q", len(values), *values)


def tree_check(indptr, indices, modules=None, at=None):
    """Checks the rules of an import tree. `at` is the offset of the count before `indptr`, if the input is bytes."""

    def word(vector, index):
        behind = 0 if vector is indptr else 8 + 8 * len(indptr)
        return None if at is None else at + behind + 8 + 8 * index

    if len(indptr) < 2:
        raise Reject("there is no module", offset=at)
    count = len(indptr) - 1
    for row, (start, end) in enumerate(zip(indptr, indptr[1:])):
        if start > end:
            raise Reject("a row runs backwards", offset=word(indptr, row + 1))
    for row, end in enumerate(indptr[1:]):
        if end > len(indices):
            raise Reject("a row ends after the last child", offset=word(indptr, row + 1))
    for index, child in enumerate(indices):
        if child >= count:
            raise Reject(f"child {child} of {count} modules", offset=word(indices, index))
    for module, (start, end) in enumerate(zip(indptr, indptr[1:])):
        if module in indices[start:end]:
            own = start + indices[start:end].index(module)
            raise Reject(f"module {module} imports itself", "cycle", word(indices, own))
    closing = closes_a_cycle(indptr, indices)
    if closing is not None:
        raise Reject("modules import each other", "cycle", word(indices, closing))
    if modules is not None and modules != count:
        raise Reject(f"{count} rows for {modules} modules", offset=at)


def closes_a_cycle(indptr, indices):
    """Returns the index in `indices` of the first import that closes a cycle, in a depth-first search from module 0."""
    on_the_way, done = set(), set()
    for root in range(len(indptr) - 1):
        if root in done:
            continue
        on_the_way.add(root)
        stack = [(root, iter(range(indptr[root], indptr[root + 1])))]
        while stack:
            module, places = stack[-1]
            place = next(places, None)
            if place is None:
                stack.pop()
                on_the_way.remove(module)
                done.add(module)
                continue
            child = indices[place]
            if child in on_the_way:
                return place
            if child not in done:
                on_the_way.add(child)
                stack.append((child, iter(range(indptr[child], indptr[child + 1]))))
    return None


def tree_decode(args):
    reader = Reader(base64.b64decode(args["data"], validate=True))
    tree = {"indptr": reader.words(), "indices": reader.words()}
    tree_check(tree["indptr"], tree["indices"], args.get("modules"), 0)
    return tree


def tree_encode(args):
    tree = args["value"]
    tree_check(tree["indptr"], tree["indices"])
    return base64.b64encode(words(tree["indptr"]) + words(tree["indices"])).decode()


def tree_order(args):
    modules = args["value"]["modules"]
    algorithm = args.get("algorithm", "0.8")
    if not modules:
        raise Reject("there is no module")
    for module in modules:
        if any(child >= len(modules) for child in module["imports"]):
            raise Reject("an import is not in the graph")
    imports = [module["imports"] for module in modules]
    dso = [module["dso"] if "dso" in module else exportable(module["kind"], args["release"]) for module in modules]
    if algorithm == "0.7":
        groups = [[module] for module in walk([0], {0}, imports)]
        return rows_of(groups, imports, keep=True)
    groups = two_phases(imports, dso)
    result = rows_of(groups, imports)
    if algorithm == "topological":
        return topological(groups, imports)
    for parent, (start, end) in enumerate(zip(result["indptr"], result["indptr"][1:])):
        row = result["indices"][start:end]
        if row and row[0] <= parent:
            raise Reject("a child is numbered before its parent", "cycle")
    return result


def exportable(kind, release):
    """Returns whether the library links modules of this kind (TREE-20)."""
    minor = int(release.split(".")[1])
    since = {"llvm": (7, 27), "c": (7, 27), "static_library": (9, 27), "hexagon": (12, 23)}
    first, last = since.get(kind, (1, 0))
    return first <= minor <= last


def walk(stack, seen, imports, stop=None):
    """Pops the top module and pushes its unseen imports, the first import lowest."""
    order = []
    while stack:
        module = stack.pop()
        order.append(module)
        if stop is not None and stop(module):
            continue
        for child in imports[module]:
            if child not in seen:
                seen.add(child)
                stack.append(child)
    return order


def two_phases(imports, dso):
    seen = {0}
    first = walk([0], seen, imports, stop=lambda module: dso[module])
    groups = [[module] for module in first if not dso[module]]
    boundary = [module for module in first if dso[module]]
    if boundary:
        host = []
        groups.append(host)
        for module in walk(list(boundary), seen, imports):
            if dso[module]:
                host.append(module)
            else:
                groups.append([module])
    return groups


def rows_of(groups, imports, keep=False):
    number = {module: place for place, group in enumerate(groups) for module in group}
    indptr, indices = [0], []
    for place, group in enumerate(groups):
        row = [number[child] for module in group for child in imports[module]]
        if not keep:
            row = sorted(set(row) - {place})
        indices += row
        indptr.append(len(indices))
    return {"order": groups, "indptr": indptr, "indices": indices}


def topological(groups, imports):
    tree = rows_of(groups, imports)
    starts = tree["indptr"]
    rows = [tree["indices"][a:b] for a, b in zip(starts, starts[1:])]
    left, order = set(range(len(groups))), []
    while left:
        waiting = {child for entry in left for child in rows[entry]}
        free = sorted(left - waiting)
        if not free:
            raise Reject("there is a cycle", "cycle")
        order.append(groups[free[0]])
        left.remove(free[0])
    return rows_of(order, imports)


if __name__ == "__main__":
    main()
