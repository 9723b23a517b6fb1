#!/usr/bin/env python3
"""Reads a block of Shale or a part and prints a line of JSON for each series, with samples as [time, start or 0, value],
exemplars as [time, value, labels] and text as [time, line, metadata]; see mixed for values. It is written from docs/format.md alone and shares nothing
with the program. Numbers in comments are sections there. stderr counts the forms that were met."""
import json, struct, sys
from collections import Counter, defaultdict
from itertools import accumulate, islice
sys.dont_write_bytecode = True
import zstandard
MAGIC, M64 = b"shale\x00p\x01", (1 << 64) - 1
seen, CRC = Counter(), range(256)  # forms that were met; table of the checksum
for _ in range(8): CRC = [c >> 1 ^ 0x82F63B78 * (c & 1) for c in CRC]

def need(ok, what):
    if not ok: sys.exit(f"{sys.argv[-1]}: {what}")
def crc32c(b):
    c = 0xFFFFFFFF
    for x in b: c = c >> 8 ^ CRC[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF
def signed(x): return ((x & M64) ^ 1 << 63) - (1 << 63)  # arithmetic wraps around

class Cursor:
    def __init__(self, b): self.b, self.p, self.bit = b, 0, 0
    def take(self, n):
        self.p += n
        need(self.p <= len(self.b), "something ends early")
        return self.b[self.p - n:self.p]
    def uint(self, size): return int.from_bytes(self.take(size), "little")
    def u8(self): return self.uint(1)
    def u64(self): return self.uint(8)
    def uvarint(self): return x if (x := self.u8()) < 128 else x - 128 + (self.uvarint() << 7)
    def varint(self): return (x := self.uvarint()) >> 1 ^ -(x & 1)
    def bytes(self): return self.take(self.uvarint())
    def bits(self, n):  # the next, lowest first, of a cursor for bits alone
        at, self.bit = self.bit, self.bit + n
        return int.from_bytes(self.b[at >> 3:(at >> 3) + 9], "little") >> (at & 7) & (1 << n) - 1
    def read(self, fields): return [READ[x](self) for x in fields]
    def each(self, fields): return [self.read(fields) for _ in range(self.uvarint())]
READ = {"1": Cursor.u8, "8": Cursor.u64, "u": Cursor.uvarint, "v": Cursor.varint, "b": Cursor.bytes,
        "t": lambda c: c.bytes().decode("latin-1"), "k": lambda c: int.from_bytes(c.take(16), "big"),
        "S": lambda c: c.each("vu"), "H": lambda c: c.each("1v8D"), "L": lambda c: c.each("uSS"),
        "D": lambda c: [x for x, in c.each("8")],
        "X": lambda c: (x := c.read("uu")) + (c.read("u") if x[1] else [0]) + (y := c.read("u")) + (c.read("uu") if y[0] else [])}  # 3.3, of text

def exceptions(found):  # 3.11, 3.12: (index, what is there)
    return zip(accumulate((skip for skip, _ in found), lambda at, skip: at + 1 + skip), (x for _, x in found))
def ints(c, n):  # 3.11
    if n == 0: return []
    head, out = c.u8(), []
    seen["ints " + ("const", "runs", "packed", "steps")[head & 3]] += 1
    seen.update(f"ints {x}" for i, x in enumerate(("delta", "divisor", "exceptions", "radix")) if head & 16 << i)
    if head == 0: return [c.varint()] * n
    while head == 1 and len(out) < n:
        step, often = c.read("vu")
        out += [signed(sum(out[-1:]) + step)] * often
    if head == 1: return out
    if head == 3: return [x for k in [c.uvarint()] for x, more in zip(ints(c, k), ints(c, k)) for _ in range(more + 1)]
    first = [c.varint()] if head & 0x10 else []
    base, divisor, n = c.varint(), c.uvarint() if head & 0x20 else 1, n - len(first)
    if head & 0x80:
        radix = c.uvarint()
        sizes = [(k, ((radix ** k - 1).bit_length() + 7) // 8) for k in range(1, 65) if radix ** k <= M64]
        k, size = min(sizes, key=lambda kc: kc[1] / kc[0])  # the first of equals
        numbers = [c.uint(size) for _ in range(0, n, k)]
        out = [numbers[i // k] // radix ** (i % k) % radix for i in range(n)]
    else:
        w, found = c.u8(), c.each("uu") if head & 0x40 else []
        packed = Cursor(c.take((n * w + 7) // 8))
        out = [packed.bits(w) for _ in range(n)]
        for at, x in exceptions(found): out[at] |= x << w
    out = first + [signed(base + x * divisor) for x in out]
    return [signed(x) for x in accumulate(out)] if first else out

def values(c, n):  # 3.12: n doubles as their bits
    p, codec = divmod(c.u8(), 8)
    seen["values " + ("", "decimal", "patched", "bits", "xor", "raw", "near")[codec]] += 1
    if codec == 3: return [x << 2 * p & M64 for x in ints(c, n)]
    if codec == 5: return [c.u64() for _ in range(n)]
    if codec == 4:
        out, string = [c.u64()], Cursor(c.take(len(c.b) - c.p))
        for _ in range(n - 1):
            change = string.bits(1)
            if change and string.bits(1): z, w = string.bits(6), string.bits(6) + 1
            out.append(out[-1] ^ (string.bits(w) << z if change else 0))
        return out
    found = c.each("u8") if codec == 2 else []
    out = [struct.unpack("<Q", struct.pack("<d", float(i) / float(10 ** p)))[0] for i in ints(c, n)]
    for at, bits in exceptions(found): out[at] = bits
    return [bits + ulps & M64 for bits, ulps in zip(out, ints(c, n))] if codec == 6 else out
def sets(c, n):  # 3.5, 3.9: label sets, 1.1
    last = b""
    for _ in range(n):
        head, tail, middle = c.read("uub")
        last = last[:head] + middle + last[len(last) - tail:]
        pairs, out = Cursor(last), {}
        while pairs.p < len(last): _, _, _, name, _, out[name] = pairs.read("1u1t1t")
        yield out

def s2(b):  # 3.1
    c, out, offset = Cursor(b), bytearray(), 0
    size = c.uvarint()
    while len(out) < size:
        t = c.u8()
        kind, n = t & 3, (t >> 2) + 1
        if kind == 0:
            form, n = ("literal", n) if n <= 60 else ("long literal", c.uint(n - 60) + 1)
            out += c.take(n)
        elif kind == 1:
            near, n = t >> 5 << 8 | c.u8(), 4 + (t >> 2 & 7)
            form, offset = "near copy" if near else "repeat" if n <= 8 else "long repeat", near or offset
            n = n if near or n <= 8 else c.uint(n - 8) + (8, 260, 65540)[n - 9]
        else:
            form, offset = "copy", c.uint(2 * kind - 2)
        seen["s2 " + form] += 1
        for _ in range(n if kind else 0): out.append(out[-offset])
    return out

VALUES = {1: lambda x, n: b"%d" % x, 2: lambda x, n: b"%0*d" % (n, x),
          6: lambda x, n: b"%04d-%02d-%02d" % (x // 10000, x // 100 % 100, x % 100),
          7: lambda x, n: b"%02d:%02d:%02d" % (x // 3600, x // 60 % 60, x % 60)}
def fields(b):  # 3.14
    c = Cursor(b)
    hard, out, columns, fragments = Cursor(c.bytes()), bytearray(), [], []
    c = unpage(c.b[c.p:], "columns")
    for i in range(c.uvarint()):
        kind = c.u8()
        n, visits, m = c.u8() if kind in (2, 3, 4) else 0, c.uvarint(), c.uvarint()
        entries = list(zip(range(len(fragments), len(fragments) + m), lengths := ints(c, m), ints(c, m)))
        fragments += lengths
        which = [entries[k] for k in (ints(c, visits) if m > 1 else [0] * visits)]
        if kind in VALUES: values = [VALUES[kind](x, n) for x in ints(c, visits)]
        elif kind == 5: values = [c.take(x) for x in ints(c, visits)]
        else: values = [hard.take((n + 1) // 2).hex()[:n].encode() for _ in range(visits if kind else 0)]
        if kind == 4: values = [x.upper() for x in values]
        seen["lines " + ("", "numbers", "digits", "hex", "upper hex", "strings", "dates", "clocks")[kind]] += 1
        columns.append((iter(which), iter(values), visits))
    fragments = [c.take(n) for n in fragments]
    need(c.p == len(c.b) and hard.p == len(hard.b), "bytes behind lines")
    for _ in range(columns[0][2]):
        at = 0
        while True:
            fragment, _, at = next(columns[at][0])
            out += fragments[fragment]
            if not at: break
            out += next(columns[at][1])
    return out

def unpage(b, what):  # 3.1
    need(len(b) > 4 and crc32c(b[:-4]) == int.from_bytes(b[-4:], "little"), f"checksum of {what}")
    c = Cursor(b[:-4])
    codec, size = c.read("1u")
    name, decode = (("none", bytes), ("s2", s2), ("zstd", zstandard.ZstdDecompressor().decompress), ("lines", fields))[codec]
    need(codec < 3 or size <= 2 << 20, "length of lines")
    payload = decode(c.b[c.p:])
    need(len(payload) == size, "length of a payload")
    seen["page " + name] += 1
    return Cursor(payload)
def page(f, offset, length):  # its payload
    seen["bytes of pages"] += length
    return unpage(f[offset:offset + length], f"the page at {offset}")

def mixed(c, n, layouts):  # 3.8: a float as its bits, a histogram as shape, spans, zero count, buckets, count, sum
    which, out = ints(c, n), [None] * n
    for number in sorted(set(which)):
        rows = [row for row in range(n) if which[row] == number]
        g, layout = len(rows), layouts[number]
        k = 3 + sum(length for spans in layout[1:] for _, length in spans) if layout else 1
        i = 0 if not layout or layout[0][0] & 2 else k - 1
        seen[f"{'integer' if i else 'float'} histograms, {'long' if g >= 8 else 'short'}"] += number > 0
        if g >= 8:
            columns = [ints(c, g) for _ in range(i)] + [values(Cursor(c.bytes()), g) for _ in range(k - i)]
        else:
            first, more, doubles = ints(c, i), iter(ints(c, i * (g - 1))), iter(values(Cursor(c.bytes()), (k - i) * g))
            columns = [accumulate([x, *islice(more, g - 1)]) for x in first]
            columns += [list(islice(doubles, g)) for _ in range(k - i)]
        for row, numbers in zip(rows, zip(*columns)):
            count = sum(numbers[:-1]) if i else numbers[-2:][0]
            out[row] = [*layout, *(x & M64 for x in (*numbers[:-2], count, numbers[-1]))] if layout else numbers[0]
    return out

def samples(c):  # 3.7
    _, flags, first, r = c.read("11uu")
    counts = ints(c, r)
    is_mixed = ints(c, r) if flags & 2 else [0] * r
    one, many = [i for i in range(r) if counts[i] == 1], [i for i in range(r) if counts[i] > 1]
    times = [[] for _ in range(r)]
    if one:
        dictionary = ints(c, c.uvarint()) if c.u8() else None
        seen["dictionary of times" if dictionary else "times of single rows"] += 1
        for i, t in zip(one, ints(c, len(one))): times[i] = [dictionary[t] if dictionary else t]
    if many:
        d, origin, unit = c.read("uvu")
        rows, lengths, which, places = ints(c, d), ints(c, d), ints(c, len(many)), ints(c, len(many))
        seen["ends of sequences"] += max(places) > 0
        sequences = [ints(Cursor(c.take(length)), n) for n, length in zip(rows, lengths)]
        for i, q, at in zip(many, which, places): times[i] = [origin + unit * x for x in sequences[q][at:at + counts[i]]]
    _, shapes, layouts = c.read("uHL") if flags & 2 else (0, [], [])  # 3.8
    layouts = [None] + [[shapes[i], *spans] for i, *spans in layouts]
    is_long = [counts[i] >= 8 or is_mixed[i] for i in range(r)]
    column = [(i, t) for i in range(r) if not is_long[i] for t in times[i]]
    blocks = [column[at:at + 512] for at in range(0, len(column), 512)]
    chunks = blocks + [[(i, t) for t in times[i]] for i in range(r) if is_long[i]]
    lengths, start_lengths = [ints(c, len(blocks)) + ints(c, len(chunks) - len(blocks)) if there else [0] * len(chunks)
                              for there in (True, flags & 1)]
    starts = [ints(Cursor(c.take(n)), len(chunk)) if n else [0] * len(chunk) for n, chunk in zip(start_lengths, chunks)]
    seen["starts"] += flags & 1
    out = [[] for _ in range(r)]
    for chunk, length, start in zip(chunks, lengths, starts):
        s = Cursor(c.take(length))
        held = mixed(s, len(chunk), layouts) if is_mixed[chunk[0][0]] else values(s, len(chunk))
        need(s.p == length, "bytes behind a segment")
        for (i, t), since, value in zip(chunk, start, held): out[i].append((t, since, value))
    return first, out

def exemplars(c):  # 3.9
    _, _, first, r = c.read("11uu")
    n = sum(counts := ints(c, r))
    times, bits, which = ints(c, n), values(Cursor(c.bytes()), n), ints(c, n)
    label_sets = list(sets(c, c.uvarint()))
    rows = zip(times, bits, (label_sets[i] for i in which))
    return first, [[*islice(rows, count)] for count in counts]
def metadata(c, n):  # 3.13: sets of it
    out = [{} for _ in range(n)]
    need((names := c.uvarint()) <= 1 << 17 and names * n <= 1 << 20, "number of names")
    for _ in range(names):
        name, has = c.bytes().decode("latin-1"), ints(c, n)
        m, kind = sum(has), c.u8()
        seen["metadata " + ("plain", "dictionary")[kind]] += 1
        values = [c.take(x) for x in ints(c, c.uvarint() if kind else m)]
        if kind: values = [values[i] for i in ints(c, m)]
        for i, value in zip((i for i in range(n) if has[i]), values): out[i][name] = value.decode("latin-1")
    return out
def text(c, lines):  # 3.13
    _, flags, r = c.read("11u")
    n = sum(counts := ints(c, r))
    times, lengths, which, sets = ints(c, n), ints(c, n), [0] * n, []
    if flags & 1:
        m = c.uvarint()
        which, sets = ints(c, n), metadata(c, m)
    rows = [(t, lines.take(size).decode("latin-1"), sets[i - 1] if i else {}) for t, size, i in zip(times, lengths, which)]
    need(lines.p == len(lines.b), "bytes behind lines")
    rows = iter(rows)
    return [[*islice(rows, count)] for count in counts]
def filters_at(f, offset, length):  # 3.15
    c = page(f, offset, length)
    n, slices = c.read("u1")
    size = c.uvarint() if slices else 0
    bits = []
    for _ in range(n):
        classes = c.u8()
        bits += [c.read("1u")[1] for class_ in range(5) if classes >> class_ & 1]
    sliced = [b for b in bits if slices and b >= 512]
    need(sum(bits) - sum(sliced) == len(c.b) - c.p and sum(b // slices for b in sliced) == size, "bits of filters")
    end = offset + length
    stored = 5 + (max(size.bit_length(), 1) + 6) // 7 + size
    for _ in range(slices):
        need(len(page(f, end, stored).b) == size, "bytes of a slice")
        end += stored
    seen["slices of filters"] += slices > 0
    return n
def keys(c):  # 3.4
    first, n = c.read("uu")
    restarts = [(int.from_bytes(c.take(8), "big"), c.uint(4)) for _ in range(0, n, 64)]
    upper, begin = [], c.p
    for k, (high, end) in enumerate(restarts):
        upper += accumulate([high] + [c.uvarint() for _ in range(min(64, n - 64 * k) - 1)])
        need(c.p - begin == end, "end of differences")
    return first, [[high << 64 | c.u64()] for high in upper]
def tree(c):  # 3.16
    labels, states, edges, root = (c.uint(4) for _ in range(4))
    n, ends = c.u64(), [0] + [c.uint(4) for _ in range(labels)]
    firsts, pairs = [c.uint(4) for _ in range(states + 1)], [(c.uint(4), c.uint(4)) for _ in range(edges)]
    texts = [c.take(b - a) for a, b in zip(ends, ends[1:])]
    need(root == states - 1 and firsts[states] == edges, "root or edges of a tree")
    def below(state):
        for label, next_ in pairs[firsts[state]:firsts[state + 1]]:
            need(next_ <= state, "order of states")
            if next_: yield from (texts[label] + b"." + rest for rest in below(next_ - 1))
            else: yield texts[label]
    names = [*below(root)]
    need(len(names) == n and names == sorted(set(names)), "names of a tree")
    return names
def labels(c):  # 3.5
    first, n = c.read("uu")
    c.take((n + 63) // 64 * 4)  # offsets of sets
    return first, [[label_set] for at in range(0, n, 64) for label_set in sets(c, min(64, n - at))]

SECTIONS = (("keys", keys, 0, 0, "uuuuk"), ("labels", labels, 1, 0, "uuuu"), ("postings", None, 2, 0, "uuubb"),
            ("samples", samples, 3, 1, "uuuuuvu"), ("exemplars", exemplars, 3, 2, "uuuuuvu"),
            ("text", text, 3, 3, "uuuuuvuX"), ("masks", None, 4, 0, "uuuu"),
            ("trees", tree, 5, 0, "uuubb"))  # name, reader, section, family, fields of an entry
def entries(c, in_runs, section, family, fields):  # 3.3: of each page offset, length, first rank (means nothing of postings)
    need(c.read("11") == [section, family], "section")
    n, at = c.uvarint(), 0
    ends = [c.uint(4) for _ in range(0, n, 16)] if in_runs else []
    begin = c.p
    for size, end in zip([16] * (n // 16) + [n % 16], ends) if in_runs else [(n, None)]:
        last_end = last_lines = rank = 0
        for _ in range(size):
            gap, length, first, *_, last = c.read(fields)
            rank += first
            need(last_end + gap >= at, "order of pages")
            at, last_end = last_end + gap, last_end + gap + length
            lines = (last_lines + last[2], last[1]) if family == 3 else (0, 0)
            if lines[1]: last_lines = sum(lines)
            yield at, length, rank, (last, lines)
            at = last_end
        need(end in (None, c.p - begin), "end of entries")
def content(f, c, name, read, *kind):  # 3.3: what there is by rank
    out, filters = defaultdict(list), set()
    for i, (offset, length, *_) in enumerate(entries(c, False, *kind)):
        seen[f"{'further ' if i else ''}index of {name}"] += 1
        for offset, length, rank, (more, lines_at) in entries(page(f, offset, length), True, *kind):
            held, first = page(f, offset, length), rank
            if not read: continue  # the checksum is right
            if read is text:
                end = max(offset + length, sum(lines_at))
                lines = page(f, *lines_at) if lines_at[1] else Cursor(b"")
                size, _, _, *of = more
                need(len(lines.b) == size, "bytes of lines")
                if of[0] and (at := (end + of[1], of[0])) not in filters:  # 3.15
                    filters.add(at)
                    seen["filters"] += filters_at(f, *at)
                items = text(held, lines)
                seen["text of several series" if len(items) > 1 else "text of one series"] += 1
            elif read is tree: first, items = rank, [[tree(held)]]  # the rank is that of a tenant
            else: first, items = read(held)
            need(held.p == len(held.b) and first == rank, f"entry or end of the page at {offset}")
            seen["series over several pages"] += len(out[first]) > 0
            for rank, rows in enumerate(items, first): out[rank] += rows
    return out

def footer(f):  # 3, 3.2
    need(len(f) > 28 and f[:8] == MAGIC and f[-8:] == MAGIC[::-1], "header or end")
    n, version, crc = struct.unpack("<III", f[-20:-8])
    need(crc32c(f[-20:-12]) == crc and version in (2, 3), "checksum of the tail, or version")
    c = page(f, len(f) - 20 - n, n)
    seed, signal, flags = c.read("81u")
    sources, tenants = c.each("buuu"), []
    c.read("vvuu" if flags & 2 else "v")  # when it was written, and its windows
    seen["several sources"] += len(sources) > 1
    for _ in range(c.uvarint()):
        tenants.append(c.read("buuuuu"))
        if any(tenants[-1][2:]): tenants[-1] += accumulate(c.read("vu"))  # least and greatest time
    return c, seed, signal, flags, sources, tenants

def part(f):
    c, _, _, flags, _, tenants = footer(f)
    sections = SECTIONS if f[-16] == 3 else SECTIONS[:-1]  # version 3 has trees
    need(c.uvarint() == len(sections), "number of sections")
    all_keys, all_labels, _, all_samples, all_more, all_text, _, *trees = [content(f, c, *section) for section in sections]
    need(seen["bytes of pages"] == len(f) - 28 and c.p == len(c.b), "a gap between pages")
    ranks = list(range(sum(t[1] for t in tenants)))
    need(list(all_keys) == ranks and list(all_labels) == ranks * (flags & 1), "ranks of keys or labels")
    alone = defaultdict(list)
    for rank, tenant in enumerate(t[0] for t in tenants for _ in range(t[1])):
        alone[tenant] += [v for v in [dict((all_labels[rank] or [{}])[0])] if [*v] == ["__name__"]]
        yield {"tenant": tenant.decode("latin-1"), "key": f"{all_keys[rank][0]:032x}",
               "labels": (all_labels[rank] or [None])[0], "samples": all_samples[rank], "exemplars": all_more[rank],
               "text": all_text[rank]}
    for at, [names] in (trees[0] if trees else {}).items():
        seen["trees"] += 1
        need(names == sorted(v["__name__"].encode("latin-1") for v in alone[tenants[at][0]]), "a tree and the labels")

if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="latin-1")  # labels are any bytes
    for series in part(open(sys.argv[1], "rb").read()):
        print(json.dumps(series, ensure_ascii=False, separators=(",", ":")))
    print(json.dumps(seen), file=sys.stderr)
