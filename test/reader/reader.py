#!/usr/bin/env python3
"""Reads a block of Shale or a part, checks all of it, and prints a line of JSON for each series: its tenant, key, labels, samples
as [time, "f", bits] or [time, "h", blob] with the start behind it if there is one, and exemplars as [time, bits, labels].

It is written from docs/format.md alone and shares nothing with the program: what it reads is what the document says. Numbers in
comments are sections there. The last line of stderr counts the forms which the block makes use of.
"""
import json, struct, sys
from types import SimpleNamespace
sys.dont_write_bytecode = True
import xxhash, zstandard
from columns import M64, Cur, crc32c, need, s2, seen
from pages import exemplars, keys, label_set, labels, masks, postings, samples, text

MAGIC = b"shale\x00p\x01"
KEYS, LABELS, POSTINGS, ROWS, WINDOWS = range(5)
SECTIONS = ((KEYS, 0, keys), (LABELS, 0, labels), (POSTINGS, 0, postings),
            (ROWS, 1, samples), (ROWS, 2, exemplars), (WINDOWS, 0, masks))

def page(f, offset, length, limit=16 << 20):  # 3.1: its payload
    need(8 <= offset and offset + length <= len(f) - 20 and length > 4, f"page at {offset} of {length} bytes lies outside")
    b = f[offset:offset + length]
    need(crc32c(b[:-4]) == int.from_bytes(b[-4:], "little"), f"checksum of the page at {offset}")
    c = Cur(b[:-4])
    codec, size = c.num(), c.uv()
    need(codec <= 2 and size <= limit, "codec or length of a page")
    seen["page " + ("none", "s2", "zstd")[codec]] += 1
    b = c.rest()
    if codec == 1:
        b = s2(b, size)
    elif codec == 2:
        need(zstandard.frame_content_size(b) == size, "content size of zstd")
        b = zstandard.ZstdDecompressor().decompress(b)
    need(len(b) == size, "length of a payload")
    return Cur(b)

def entries(c, section):  # 3.3: [offset, length, what the page says itself]
    end = rank = 0
    out = []
    for _ in range(c.uv()):
        offset = end + c.uv()
        length = c.uv()
        end = offset + length
        if section == POSTINGS:
            out.append((offset, length, (c.uv(), c.bytes(), c.bytes())))
            continue
        rank += c.uv()
        about = rank, c.uv() + 1
        if section == KEYS:
            about += int.from_bytes(c.take(16), "big"),
        elif section == ROWS:
            about += c.uv(), c.zz()
            about += about[-1] + c.uv(),
        out.append((offset, length, about))
    return out

def summed_up(section, pages):  # the entry of an index page, from those in it
    abouts = [about for _, _, about in pages]
    first, last = abouts[0], abouts[-1]
    if section == POSTINGS:
        return first
    span = first[0], last[0] + last[1] - first[0]
    if section == ROWS:
        return span + (sum(a[2] for a in abouts), min(a[3] for a in abouts), max(a[4] for a in abouts))
    return span + first[2:]

def key_of(canonical, d, seed, signal):  # 2.1
    def h(x, bits):
        return xxhash.xxh3_64_intdigest(x, seed) >> 64 - bits if x is not None else 0
    path = d.get(b"__name__", b"")
    if signal == 1 and len(d) == 1 and b"." in path:
        parent = path[:path.rindex(b".")]
        top = h(b".".join(parent.split(b".")[:2]), 20) << 28 | h(parent, 28)
    else:
        name = d.get(b"__name__" if signal == 1 else b"service_name")
        group = d.get(b"job") if signal == 1 else d.get(b"namespace", d.get(b"cluster"))
        top = h(name, 20) << 28 | h(group, 12) << 16 | h(d.get(b"instance"), 16)
    return top << 80 | xxhash.xxh3_128_intdigest(canonical, seed) & (1 << 80) - 1

def sections(f, c, taken):  # 3.3: what the pages of each section hold, as [(about, content)]
    need(c.uv() == len(SECTIONS), "number of sections")
    for section, family, read in SECTIONS:
        need((c.num(), c.num()) == (section, family), "section")
        held = []
        for offset, length, about in entries(c, section):
            index = page(f, offset, length)
            need((index.num(), index.num()) == (section, family), "section of an index page")
            inside = index.end(entries(index, section))
            need(about == summed_up(section, inside), f"entry of the index page at {offset}")
            taken += [(offset, length)] + [e[:2] for e in inside]
            for offset, length, about in inside:
                held.append(read(page(f, offset, length)))
                need(about == held[-1][0], f"entry of the page at {offset}")
            seen[f"{'further ' if len(held) > len(inside) else ''}index of {read.__name__}"] += 1
        yield held

def footer(f):  # 3, 3.2
    need(len(f) > 28 and f[:8] == MAGIC and f[-8:] == MAGIC[::-1], "header or end")
    n, version, crc = struct.unpack("<III", f[-20:-8])
    need(crc32c(f[-20:-12]) == crc, "checksum of the tail")
    need(version == 1, "version")
    at = len(f) - 20 - n
    c = page(f, at, n, 64 << 20)
    seed, signal, flags = c.num(8), c.num(), c.uv()
    need(signal in (1, 2) and flags & ~3 == 0, "signal or flags")
    sources = c.each(lambda: (c.bytes().decode(), c.uv(), c.uv(), c.uv()))
    names = [s[:2] for s in sources]
    need(names and names == sorted(set(names)) and all(lo <= hi for *_, lo, hi in sources), "sources")
    seen["several sources"] += len(names) > 1
    written = c.zz()
    windows = (c.zz(), c.uv(), c.uv()) if flags & 2 else None
    tenants = []
    for _ in range(c.uv()):
        tenants.append((c.bytes(), c.uv(), c.uv(), c.uv()))
        if any(tenants[-1][2:]):
            least = c.zz()
            tenants[-1] += least, least + c.uv()
    names = [t[0] for t in tenants]
    need(names == sorted(set(names)) and all(t[1] for t in tenants), "tenants")
    return SimpleNamespace(at=at, rest=c, seed=seed, signal=signal, has_labels=flags & 1, sources=sources, written=written,
                           windows=windows, tenants=tenants)

def by_rank(pages, owner, what):  # of pages that cover all ranks
    out = []
    for (first, n, *_), held in pages:
        need(first == len(out) and n == len(held) and owner[first] == owner[first + n - 1], f"ranks of a page of {what}")
        out += held
    need(len(out) == len(owner), f"number of {what}")
    return out

def rows_by_rank(pages, owner):
    out = [[] for _ in owner]
    for (first, n, *_), held in pages:
        need(n == len(held) and owner[first] == owner[first + n - 1], "ranks of a page of rows")
        seen["series over several pages"] += len(out[first]) > 0
        for rank, rows in enumerate(held, first):
            out[rank] += rows
    return out

def part(f):
    foot = footer(f)
    taken = [(foot.at, len(f) - 20 - foot.at)]
    key_pages, label_pages, posting_pages, sample_pages, exemplar_pages, mask_pages = sections(f, foot.rest, taken)
    foot.rest.end(None)
    at = 8
    for offset, n in sorted(taken):
        need(offset == at, f"gap before the page at {offset}")
        at += n
    owner = [i for i, t in enumerate(foot.tenants) for _ in range(t[1])]
    all_keys = by_rank(key_pages, owner, "keys")
    sets = by_rank(label_pages, owner if foot.has_labels else [], "labels")
    all_masks = by_rank(mask_pages, owner if foot.windows else [], "masks")
    rows = rows_by_rank(sample_pages, owner), rows_by_rank(exemplar_pages, owner)

    base, expected = {}, {}
    for rank, tenant in enumerate(owner):
        first = base.setdefault(tenant, rank)
        d = label_set(sets[rank]) if sets else None
        for name, value in (d or {}).items():
            expected.setdefault((tenant, name, value), []).append(rank - first)
        need(d is None or all_keys[rank] == key_of(sets[rank], d, foot.seed, foot.signal), f"key of rank {rank}")
        need(rank == first or all_keys[rank - 1] < all_keys[rank], "order of keys")
        times, more = [[row[0] for row in family[rank]] for family in rows]
        need(times == sorted(set(times)) and more == sorted(more), "order of times")
        if all_masks:
            start, length, n = foot.windows
            windows = {max(0, min(n - 1, (t - start) // length)) for t in times + more}
            need(all_masks[rank] & M64 == sum(1 << w for w in windows), f"mask of rank {rank}")
        yield {"tenant": foot.tenants[tenant][0].decode(), "key": f"{all_keys[rank]:032x}", "labels": d and text(d),
               "samples": rows[0][rank], "exemplars": rows[1][rank]}

    listed = {}
    found = [(about[0], *entry) for about, held in posting_pages for entry in held]
    need(found == sorted(found), "order of postings")
    for tenant, name, value, ranks in found:
        listed.setdefault((tenant, name, value), []).extend(ranks)
        seen["posting lists that are cut"] += len(listed[tenant, name, value]) > len(ranks)
    need(listed == expected, "postings are not those of the labels")
    for i, (_, n, *counts) in enumerate(foot.tenants):
        mine = [[row[0] for series in family[base[i]:base[i] + n] for row in series] for family in rows]
        times = mine[0] + mine[1]
        need(counts == [*map(len, mine)] + ([min(times), max(times)] if times else []), "counts of a tenant")

if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        lines = [json.dumps(series, ensure_ascii=False, separators=(",", ":")) for series in part(file.read())]
    sys.stdout.buffer.writelines(line.encode(errors="surrogateescape") + b"\n" for line in lines)
    print(json.dumps(seen), file=sys.stderr)
