"""What stands in the payloads of pages: label sets, keys, postings, rows, masks. See reader.py."""
from itertools import accumulate
from columns import Cur, M64, need, seen, u64, uv, zz

def label_set(b):  # 1.1
    c, out = Cur(b), {}
    while c.p < len(b):
        need(c.num() == 10, "label set")
        pair = Cur(c.bytes())
        need(pair.num() == 10, "name of a label")
        name = pair.bytes()
        need(pair.num() == 18, "value of a label")
        out[name] = pair.end(pair.bytes())
    pairs = [b"\x0a" + uv(len(n)) + n + b"\x12" + uv(len(v)) + v for n, v in sorted(out.items()) if v]
    need(b == b"".join(b"\x0a" + uv(len(p)) + p for p in pairs), "label set is not canonical")
    return out

def layouts(c):  # 3.8
    shapes = c.each(lambda: (c.num(), c.zz(), c.num(8), c.each(lambda: c.num(8))))
    def spans():
        return c.each(lambda: (c.zz(), c.uv()))
    return c.end(c.each(lambda: (shapes[c.uv()], spans(), spans())))

def blob(numbers, shape, positive, negative):  # 1.2
    flags, schema, threshold, bounds = shape
    floats, p = flags & 2, 2 + sum(n for _, n in positive)
    counts = [numbers[-2] if floats else sum(numbers[:-1])] + numbers[:-2]
    out = bytes([flags]) + u64(numbers[-1]) + zz(schema) + u64(threshold)
    out += b"".join(u64(x) if floats else uv(x & M64) for x in counts[:2])
    for s in positive, negative:
        out += uv(len(s)) + b"".join(zz(gap) + uv(n) for gap, n in s)
    for s in counts[2:p], counts[p:]:
        out += uv(len(s)) + b"".join(u64(x) if floats else zz(x - last) for last, x in zip([0] + s, s))
    return out + uv(len(bounds)) + b"".join(map(u64, bounds))

def mixed(c, n, lays):  # 3.8: a segment, as values to print
    which, out = c.ints(n), [None] * n
    for number in sorted(set(which)):
        rows = [i for i in range(n) if which[i] == number]
        lay = lays[number - 1] if number else None
        g, k, i = len(rows), 1, 0
        if lay:
            k = 3 + sum(x for _, x in lay[1] + lay[2])
            i = 0 if lay[0][0] & 2 else k - 1
            seen[f"{'integer' if i else 'float'} histograms, {'long' if g >= 8 else 'short'}"] += 1
        if g >= 8:
            columns = [c.ints(g) for _ in range(i)] + [Cur(c.bytes()).values(g) for _ in range(k - i)]
        else:
            first, more, doubles = c.ints(i), c.ints(i * (g - 1)), Cur(c.bytes()).values((k - i) * g)
            columns = [[*accumulate([x] + more[j * (g - 1):(j + 1) * (g - 1)])] for j, x in enumerate(first)]
            columns += [doubles[j * g:(j + 1) * g] for j in range(k - i)]
        for row, numbers in zip(rows, zip(*columns)):
            out[row] = ("h", blob(list(numbers), *lay).hex()) if lay else ("f", f"{numbers[0]:016x}")
    return c.end(out)

# Each of these reads a payload and gives what an entry says of it, and what it holds.

def keys(c):  # 3.4
    first, n = c.uv(), c.uv()
    highs = [int.from_bytes(c.take(8), "big")]
    for _ in range(n - 1):
        highs.append(highs[-1] + c.uv())
    out = [high << 64 | c.num(8) for high in highs]
    return (first, n, out[0]), c.end(out)

def labels(c):  # 3.5
    first, n = c.uv(), c.uv()
    offsets = [c.num(4) for _ in range((n + 63) // 64)]
    sets = Cur(c.rest())
    out = []
    for i, offset in enumerate(offsets):
        need(sets.p == offset, "offset of a label set")
        out += sets.sets(min(64, n - 64 * i), 64)
    return (first, n), sets.end(out)

def postings(c):  # 3.6
    tenant, out, name, value = c.uv(), [], b"", b""
    for _ in range(c.uv()):
        head = c.uv()
        if head & 1:
            name = c.bytes()
        value = value[:head >> 1] + c.bytes()
        count, length, rank = c.uv(), c.uv(), c.uv()
        runs, ranks = Cur(c.take(length)), []
        while runs.p < length:
            x = runs.uv()
            rank += x >> 1
            ranks += range(rank, rank + (runs.uv() + 2 if x & 1 else 1))
            rank = ranks[-1] + 1
        need(len(ranks) == count, "number of ranks of a posting list")
        out.append((name, value, ranks))
    return (tenant, *out[0][:2]), c.end(out)

def about_rows(first, rows):
    times = [row[0] for series in rows for row in series]
    return (first, len(rows), len(times), min(times), max(times)), rows

def samples(c):  # 3.7
    need(c.num() == 1, "family of a page")
    flags, first, r = c.num(), c.uv(), c.uv()
    n = c.ints(r)
    is_mixed = c.ints(r) if flags & 2 else [0] * r
    one, many = [i for i in range(r) if n[i] == 1], [i for i in range(r) if n[i] > 1]
    times = [[] for _ in range(r)]
    if one:
        coded = c.num()
        need(coded <= 1, "coding of times")
        seen["dictionary of times" if coded else "times of single rows"] += 1
        dictionary = c.ints(c.uv()) if coded else None
        for i, t in zip(one, c.ints(len(one))):
            times[i] = [dictionary[t] if coded else t]
    if many:
        d, origin, unit = c.uv(), c.zz(), c.uv()
        lengths, which = c.ints(d), c.ints(len(many))
        sequences = [c.take(length) for length in lengths]
        for i, q in zip(many, which):
            s = Cur(sequences[q])
            times[i] = [origin + unit * x for x in s.end(s.ints(n[i]))]
    lays = layouts(Cur(c.bytes())) if flags & 2 else None
    is_short = [n[i] < 8 and not is_mixed[i] for i in range(r)]
    longs = [i for i in range(r) if not is_short[i]]
    column = sum(n[i] for i in range(r) if is_short[i])
    blocks = [min(512, column - at) for at in range(0, column, 512)]
    counts = blocks + [n[i] for i in longs]
    lengths = c.ints(len(blocks)) + c.ints(len(longs))
    starts = [[0] * k for k in counts]
    if flags & 1:
        for i, length in enumerate(c.ints(len(blocks)) + c.ints(len(longs))):
            if length or i < len(blocks):
                s = Cur(c.take(length))
                starts[i] = s.end(s.ints(counts[i]))
                seen["starts"] += 1
    short, segments = [], []
    for i, length in enumerate(lengths):
        s = Cur(c.take(length))
        if i >= len(blocks) and is_mixed[longs[i - len(blocks)]]:
            rows = mixed(s, counts[i], lays)
        else:
            rows = [("f", f"{bits:016x}") for bits in s.values(counts[i])]
        rows = [row + ((start,) if start else ()) for row, start in zip(rows, starts[i])]
        short += rows if i < len(blocks) else []
        segments += [rows] if i >= len(blocks) else []
    short, segments = iter(short), iter(segments)
    rows = [[(t, *next(short)) for t in times[i]] if is_short[i] else [(t, *row) for t, row in zip(times[i], next(segments))]
            for i in range(r)]
    return about_rows(first, c.end(rows))

def exemplars(c):  # 3.9
    need((c.num(), c.num()) == (2, 0), "family and flags of a page")
    first, r = c.uv(), c.uv()
    counts = c.ints(r)
    n = sum(counts)
    times, bits, which = c.ints(n), Cur(c.bytes()).values(n), c.ints(n)
    k = c.uv()
    sets = c.sets(k, k)
    rows = iter([(t, f"{b:016x}", text(label_set(sets[i]))) for t, b, i in zip(times, bits, which)])
    return about_rows(first, c.end([[next(rows) for _ in range(count)] for count in counts]))

def masks(c):  # 3.10
    first, r = c.uv(), c.uv()
    return (first, r), c.end(c.ints(r))

def text(d):
    return {n.decode(errors="surrogateescape"): v.decode(errors="surrogateescape") for n, v in d.items()}
