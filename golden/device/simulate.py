"""A model of the simulated device, written from the text of `device.simulate` in spec/schema/device.json and of the rules. It
shares no code with the crate. It compares every case of that operation with its own results.

Run: python simulate.py        (in this folder)
"""

import os, sys

os.chdir(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, "../../conformance")
import cases as conformance

FRESH, FREED, PENDING = 205, 221, 165
M = (1 << 64) - 1
ATTR = {"exist": 1, "max_threads_per_block": 256, "warp_size": 1, "compute_version": "1.0", "device_name": "simulated",
        "multi_processor_count": 1, "max_thread_dimensions": "[256, 256, 64]"}


class Reject(Exception):
    pass


class Simulation:
    def __init__(s, seed=1, defect=None, table=False):
        s.clock, s.defect, s.table = seed | 1, defect, table
        s.blocks = {}          # base -> [bytes, alive]
        s.next = 0
        s.queues = {}          # (id, order) -> list
        s.recorded = set()
        s.calls, s.hazards, s.results = [], [], []
        s.spaces, s.streams, s.hosts = {}, {}, {}
        s.seq = 0
        s.dev = 0
        s.current = 0
        s.fail_alloc = s.fail_copy = None
        s.pools = {}           # id -> (free, taken) lists of (base, size)
        s.twice = []
        s.event = 0

    def reject(s, kind, rule):
        raise Reject({"reject": kind, "rule": rule})

    def failed(s, call, text):
        if s.table:
            text = f"a device of C: {call} failed with -1 ({text})"
        raise Reject({"failed": text})

    def here(s):
        if s.dev not in (0, 1):
            s.reject("missing", "DEV-42")

    def keys(s):
        return sorted(s.queues)

    def tick(s):
        c = s.clock
        c ^= (c << 13) & M
        c ^= c >> 7
        c ^= (c << 17) & M
        s.clock = c
        if c % 8 == 0:
            keys = s.keys()
            s.step(keys[(c >> 8) % len(keys)])

    def push(s, key, work):
        if key not in s.queues:
            if key[1] != float("-inf"):
                s.reject("missing", "DEV-42")
            s.queues[key] = []
        if s.defect == "stream-runs-backwards":
            s.queues[key].insert(0, work)
        else:
            s.queues[key].append(work)
        s.tick()

    def step(s, key):
        queue = s.queues.get(key)
        if not queue:
            return False
        if queue[0][0] == "wait" and queue[0][1] not in s.recorded:
            return False
        work = queue.pop(0)
        getattr(s, "run_" + work[0])(*work[1:])
        return True

    def run_record(s, event):
        s.recorded.add(event)

    def run_wait(s, event):
        pass

    def run_fill(s, space, byte):
        base = s.spaces.get(space)
        if base is not None:
            bytes_ = s.blocks[base][0]
            bytes_[:] = [byte] * len(bytes_)

    def run_copy(s, a, ao, b, bo, n, then):
        def get(end):
            kind, at = end
            return s.hosts[at] if kind == "host" else s.blocks[at][0]
        source, target = get(a), get(b)
        if s.defect == "overlap-smears" and a == b and ao < bo + n and bo < ao + n:
            for at in range(n):
                target[bo + at] = source[ao + at]
            return
        now = source[ao:ao + n]
        if a[0] == "host" and now != then:
            s.hazards.append(("source-changed", a))
        target[bo:bo + n] = now

    def drain(s, key):
        while s.queues.get(key):
            if not s.step(key) and not s.step_any():
                break

    def step_any(s):
        return any(s.step(key) for key in s.keys())

    def alloc(s, n, align):
        s.calls.append(["alloc", s.dev, n, align])
        if s.fail_alloc is not None:
            if s.fail_alloc == 0:
                s.fail_alloc = None
                s.failed("alloc", f"no memory for {n} bytes (injected failure)")
            s.fail_alloc -= 1
        fits = [base for base, (b, alive) in s.blocks.items() if not alive and len(b) == n]
        if fits and max(fits) % align == 0:
            base = max(fits)
            s.blocks[base] = [[FRESH] * n, True]
            return base
        base = -(-max(s.next, 1 << 44) // align) * align
        s.next = base + n + align
        s.blocks[base] = [[FRESH] * n, True]
        return base

    def free(s, base):
        s.calls.append(["free", s.dev])
        if base is None or base not in s.blocks or not s.blocks[base][1]:
            s.hazards.append(("freed-twice", base))
            s.reject("missing", "DEV-31")
        if s.defect != "free-forgets-the-queue":
            while s.step_any():
                pass
        block = s.blocks[base]
        block[0][:] = [FREED] * len(block[0])
        block[1] = False

    def stream_key(s, name):
        return (s.dev, s.streams.get(name, float("-inf")))

    def do(s, step):
        op, *args = step
        return getattr(s, "do_" + op.replace("-", "_"))(*args)

    def do_alloc(s, name, n, align=64):
        s.here()
        base = s.alloc(n, align)
        again = base in s.spaces.values()
        s.spaces[name] = base
        return {"aligned": base % align == 0, "again": again}

    def do_free(s, name):
        s.free(s.spaces.get(name))

    def do_workspace(s, name, n):
        s.here()
        if s.twice:
            s.spaces[name] = s.twice.pop()
            return
        n = max(-(-n // 4096), 1) * 4096
        free, taken = s.pools.setdefault(s.dev, ([], []))
        fits = [at for at, (_, size) in enumerate(free) if size >= n]
        if fits:
            block = free.pop(fits[0])
        else:
            if free:
                base, _ = free.pop()
                s.free(base)
            block = (s.alloc(n, 64), n)
        taken.append(block)
        s.spaces[name] = block[0]
        if s.defect == "workspace-twice":
            s.twice.append(block[0])

    def do_free_workspace(s, name):
        base = s.spaces.get(name)
        free, taken = s.pools.get(s.dev, ([], []))
        found = [at for at, block in enumerate(taken) if block[0] == base]
        if not found:
            if s.defect == "workspace-twice":
                return
            s.hazards.append(("workspace-not-taken", base))
            s.reject("missing", "DEV-31")
        block = taken.pop(found[-1])
        if free and block[1] <= free[-1][1]:
            at = 0 if len(free) == 1 else max((i + 1 for i, b in enumerate(free) if b[1] <= block[1]), default=0)
        else:
            at = len(free)
        free.insert(at, block)

    def do_host(s, name, data):
        s.hosts[name] = list(data)

    def do_change(s, name, data):
        s.hosts[name][:len(data)] = data

    def do_see(s, name):
        return list(s.hosts[name])

    def do_ask(s, name):
        if name == "exist":
            return int(s.dev in (0, 1))
        s.here()
        return ATTR.get(name)

    def do_copy(s, a, ao, b, bo, n, stream=None):
        s.calls.append(["copy", n])
        if s.fail_copy is not None:
            if s.fail_copy == 0:
                s.fail_copy = None
                s.failed("copy", "simulated: copy failed with -1 (injected failure)")
            s.fail_copy -= 1
        if n == 0:
            return
        end = lambda name: ("host", name) if name in s.hosts else ("space", s.spaces.get(name))
        a, b = end(a), end(b)
        if a[0] == b[0] == "host":
            s.reject("type", "DEV-41")
        for (kind, base), offset in ((a, ao), (b, bo)):
            if kind == "space":
                if base is None or not s.blocks[base][1]:
                    s.hazards.append(("use-after-free", base))
                    s.reject("missing", "DEV-41")
                if offset + n > len(s.blocks[base][0]):
                    s.hazards.append(("out-of-bounds", base))
                    s.reject("limit", "DEV-41")
        if a == b and ao < bo + n and bo < ao + n:
            s.hazards.append(("overlap", a[1]))
        own = s.stream_key(stream)
        waited = {work[1] for work in s.queues.get(own, []) if work[0] == "wait"}
        for key in s.keys():
            if key == own:
                continue
            for work in reversed(s.queues[key]):
                if work[0] == "record" and work[1] in waited:
                    break
                if work[0] == "copy":
                    oa, ob = work[1], work[3]
                    if a == ob:
                        s.hazards.append(("unordered", a))
                    if b in (oa, ob):
                        s.hazards.append(("unordered", b))
        then = s.hosts[a[1]][ao:ao + n] if a[0] == "host" else None
        if b[0] == "host":
            s.hosts[b[1]][bo:bo + n] = [PENDING] * n
        s.push(own, ("copy", a, ao, b, bo, n, then))

    def do_fill(s, space, byte, stream=None):
        s.calls.append(["launch", s.current])
        s.push((s.current, s.streams.get(stream, float("-inf"))), ("fill", space, byte))

    def do_stream(s, name):
        s.here()
        s.seq += 1
        # The newest first; the default stream before all of them.
        s.streams[name] = 1e9 - s.seq
        s.queues[(s.dev, s.streams[name])] = []
        s.calls.append(["stream", s.dev])

    def do_free_stream(s, name):
        s.here()
        s.calls.append(["free-stream", s.dev])
        key = s.stream_key(name)
        s.drain(key)
        s.queues.pop(key, None)

    def do_order(s, before, after):
        s.here()
        s.calls.append(["order", s.dev])
        s.event += 1
        s.push(s.stream_key(before), ("record", s.event))
        s.push(s.stream_key(after), ("wait", s.event))

    def do_sync(s, name=None):
        s.here()
        s.calls.append(["sync", s.dev])
        if s.defect != "sync-returns-early":
            s.drain(s.stream_key(name))

    def do_device(s, number):
        s.dev = number
        s.here()
        s.current = number
        s.calls.append(["set-device", number])

    def do_fail_alloc(s, n):
        s.fail_alloc = n

    def do_fail_copy(s, n):
        s.fail_copy = n

    def name(s, of):
        if isinstance(of, tuple):
            kind, of = of
            if kind == "host":
                return of
        return "=".join(sorted(n for n, base in s.spaces.items() if base == of))


def run(steps, seed=1, defect=None, on=None):
    s = Simulation(seed, defect, on == "table")
    for step in steps:
        try:
            s.results.append(s.do(step))
        except Reject as rejected:
            s.results.append(rejected.args[0])
    hazards = [[what, s.name(of)] for what, of in s.hazards]
    left = []
    for key in s.keys():
        if s.queues[key]:
            left.append(["never-synced", next((n for n, o in s.streams.items() if o == key[1]), "")])
    alive = {base: b for base, (b, live) in s.blocks.items() if live}
    left += [["never-freed", s.name(base)] for base in sorted(alive)]
    count = lambda name: sum(call[0] == name for call in s.calls)
    return {"results": s.results, "hazards": hazards, "left": left,
            "alive": {"spaces": len(alive), "bytes": sum(map(len, alive.values())), "streams": max(count("stream") - count("free-stream"), 0)},
            "calls": s.calls}


wrong = 0
for case in conformance.load("device"):
    if case["op"] == "device.simulate":
        script = case["input"]["value"]
        computed = run(script["steps"], script.get("seed", 1), script.get("defect"), script.get("on"))
        for key, value in computed.items():
            if value != case["expect"]["accept"][key]:
                print(f"{case['id']}: {key}: computed {value}, the case has {case['expect']['accept'][key]}")
                wrong += 1
sys.exit(wrong > 0)
