"""Archives: `ar` and tar."""

import gzip

from classes import n, of


def ar_member(name, data):
    return b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"644", len(data)) + data + b"\n" * (len(data) % 2)


@of("ar-gnu-names.a")
def ar_gnu_names():
    "a GNU archive of 100,000 members that share a name of 6 MB"
    table = b"n" * n(6_000_000) + b"/\n"
    members = b"".join(ar_member(b"/%d" % (at % 1000), b"") for at in range(n(100_000)))
    return b"!<arch>\n" + ar_member(b"//", table) + members


@of("ar-bsd-names.a")
def ar_bsd_names():
    "a BSD archive of 100,000 members with different names"
    members = (ar_member(b"#1/20", b"%020d" % at) for at in range(n(100_000)))
    return b"!<arch>\n" + b"".join(members)


@of("ar-empty.a")
def ar_empty():
    "an archive of 200,000 members of nothing"
    return b"!<arch>\n" + ar_member(b"a/", b"") * n(200_000)


def tar_member(name, data, kind=b"0", size=None):
    size = len(data) if size is None else size
    head = bytearray(512)
    head[:len(name)] = name
    head[100:108] = b"0000644\0"
    head[124:136] = b"%011o " % size
    head[148:156] = b" " * 8
    head[156:157] = kind
    head[257:265] = b"ustar\x0000"
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + bytes(-len(data) % 512)


def long_name(name):
    return tar_member(b"././@LongLink", name + b"\0", b"L")


@of("tar-below-a-long-name.tar")
def tar_below():
    "a tar of 5,000 members in a tar, below a name of 1 MB"
    inner = tar_member(b"a", b"") * n(5_000) + bytes(1024)
    return long_name(b"d" * 1_000_000) + tar_member(b"x", inner) + bytes(1024)


@of("tar-nested.tar")
def tar_nested():
    "four tars in each other, each below a name of 500 KB"
    inner = tar_member(b"a", b"") * n(2_000) + bytes(1024)
    for level in range(3):
        inner = long_name(b"%d" % level * 500_000) + tar_member(b"x", inner) + bytes(1024)
    return inner


@of("tar-empty.tar.gz")
def tar_empty_gz():
    "300,000 members of nothing in a tar under gzip"
    return gzip.compress(b"".join(tar_member(b"%d" % at, b"") for at in range(n(300_000))) + bytes(1024), 6)


@of("tar-long-names.tar.gz")
def tar_long_gz():
    "20,000 members with GNU names of 4 KB in a tar under gzip"
    return gzip.compress(b"".join(long_name(b"n" * 4000 + b"%d" % at) + tar_member(b"x", b"") for at in range(n(20_000))), 6)


@of("tar-pax.tar")
def tar_pax():
    "20,000 members with names in pax headers"
    def one(at):
        path = b"p" * 200 + b"%d" % at
        record = b"%d path=%s\n" % (len(path) + 10, path)
        return tar_member(b"pax", record, b"x") + tar_member(b"short", b"")
    return b"".join(one(at) for at in range(n(20_000))) + bytes(1024)
