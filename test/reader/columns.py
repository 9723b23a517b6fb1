"""Numbers and columns of them, the checksum, and the decoding of s2. See reader.py."""
import collections, struct, sys

M64 = (1 << 64) - 1
seen = collections.Counter()  # forms that were met

def need(ok, what):
    if not ok:
        sys.exit(f"{sys.argv[-1]}: {what}")

def crc_step(c):
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return c

CRC = [crc_step(c) for c in range(256)]

def crc32c(b):
    c = 0xFFFFFFFF
    for x in b:
        c = c >> 8 ^ CRC[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF

def signed(x):
    return ((x & M64) ^ 1 << 63) - (1 << 63)

def u64(x):
    return struct.pack("<Q", x & M64)

def uv(x):
    return bytes([x]) if x < 128 else bytes([x & 127 | 128]) + uv(x >> 7)

def zz(x):
    return uv((signed(x) << 1 ^ signed(x) >> 63) & M64)

def bits_at(b, at, n):
    return int.from_bytes(b[at >> 3:(at >> 3) + 9], "little") >> (at & 7) & (1 << n) - 1

class Cur:
    """Reads bytes from their beginning."""
    def __init__(self, b):
        self.b, self.p = b, 0

    def take(self, n):
        need(0 <= n <= len(self.b) - self.p, "something ends early")
        self.p += n
        return self.b[self.p - n:self.p]

    def rest(self):
        return self.take(len(self.b) - self.p)

    def end(self, result):
        need(self.p == len(self.b), "something has bytes behind its end")
        return result

    def num(self, n=1):
        return int.from_bytes(self.take(n), "little")

    def uv(self):
        x = shift = 0
        while True:
            c = self.take(1)[0]
            x |= (c & 127) << shift
            shift += 7
            if c < 128:
                need(x <= M64, "uvarint above 64 bits")
                return x

    def zz(self):
        x = self.uv()
        return x >> 1 ^ -(x & 1)

    def bytes(self):
        return self.take(self.uv())

    def each(self, f):
        return [f() for _ in range(self.uv())]

    def ints(self, n):  # 3.11
        if n == 0:
            return []
        head, out, at = self.num(), [], 0
        kind, delta, divisor, exceptions, radix = head & 3, head & 0x10, head & 0x20, head & 0x40, head & 0x80
        need(head in (0, 1) or kind == 2 and not head & 12 and not (exceptions and radix), "kind or flags of ints")
        seen.update("ints " + w for w, x in (
            ("const", kind == 0), ("runs", kind == 1), ("packed", kind == 2),
            ("delta", delta), ("divisor", divisor), ("exceptions", exceptions), ("radix", radix)) if x)
        if kind == 0:
            return [self.zz()] * n
        if kind == 1:
            while len(out) < n:
                at = signed(at + self.zz())
                often = self.uv()
                need(1 <= often <= n - len(out), "length of a run")
                out += [at] * often
            return out
        first, base = self.zz() if delta else 0, self.zz()
        div, count = self.uv() if divisor else 1, n - 1 if delta else n
        if radix:
            radix = self.uv()
            need(2 <= radix <= 1 << 32, "base of digits")
            ks = [(k, ((radix ** k - 1).bit_length() + 7) // 8) for k in range(1, 65) if radix ** k <= M64]
            k, size = min(ks, key=lambda kc: kc[1] / kc[0])  # the first of equals
            while len(out) < count:
                x = self.num(size)
                for _ in range(min(k, count - len(out))):
                    out.append(x % radix)
                    x //= radix
                need(x == 0, "more digits than numbers")
        else:
            w = self.num()
            need(w <= 64, "width of ints")
            ors = self.each(lambda: (self.uv(), self.uv() << w)) if exceptions else ()
            b = self.take((count * w + 7) // 8)
            out = [bits_at(b, i * w, w) for i in range(count)]
            for skip, x in ors:
                at += skip + 1
                need(at <= count and x <= M64, "exception of ints")
                out[at - 1] |= x
        out = [signed(base + r * div) for r in out]
        if delta:
            out.insert(0, first)
            for i in range(1, n):
                out[i] = signed(out[i] + out[i - 1])
        return out

    def values(self, n):  # 3.12, up to the end: n doubles as their bits
        head = self.num()
        codec, p, at = head & 7, head >> 3, 0
        need(1 <= codec <= 5, "codec of values")
        seen["values " + ("decimal", "patched", "bits", "xor", "raw")[codec - 1]] += 1
        if codec <= 2:
            need(p <= 15, "decimals of values")
            patches = self.each(lambda: (self.uv(), self.num(8))) if codec == 2 else ()
            out = [struct.unpack("<Q", struct.pack("<d", float(i) / float(10 ** p)))[0] for i in self.ints(n)]
            for skip, x in patches:
                at += skip + 1
                need(at <= n, "exception of values")
                out[at - 1] = x
        elif codec == 3:
            out = [x << 2 * p & M64 for x in self.ints(n)]
        elif codec == 5:
            out = [self.num(8) for _ in range(n)]
        else:
            out, s, z, w = [self.num(8)], self.rest(), 0, 0
            while len(out) < n:
                at, x = at + 1, 0
                if bits_at(s, at - 1, 1):
                    at += 1
                    if bits_at(s, at - 1, 1):
                        z, w, at = bits_at(s, at, 6), bits_at(s, at + 6, 6) + 1, at + 12
                    x, at = bits_at(s, at, w) << z, at + w
                out.append(out[-1] ^ x)
            need((at + 7) // 8 == len(s), "length of xor")
        return self.end(out)

    def sets(self, n, every):  # 3.5 and 3.9
        out, last = [], b""
        for i in range(n):
            head, tail, mid = self.uv(), self.uv(), self.bytes()
            need(head + tail <= (len(last) if i % every else 0), "label sets share too much")
            last = last[:head] + mid + last[len(last) - tail:]
            out.append(last)
        return out

def s2(b, size):  # 3.1
    c, out, offset = Cur(b), bytearray(), 0
    need(c.uv() == size, "length of s2")
    while len(out) < size:
        t = c.num()
        kind, n = t & 3, t >> 2
        if kind == 0:
            seen["s2 literal" if n < 60 else "s2 long literal"] += 1
            out += c.take((n if n < 60 else c.num(n - 59)) + 1)
            continue
        if kind == 1:
            n, near = n & 7, t >> 5 << 8 | c.num()
            seen["s2 near copy" if near else "s2 repeat" if n <= 4 else "s2 long repeat"] += 1
            n, offset = n + 4 if near or n <= 4 else c.num(n - 4) + (8, 260, 65540)[n - 5], near or offset
        else:
            seen["s2 copy"] += 1
            n, offset = n + 1, c.num(2 * kind - 2)
        need(0 < offset <= len(out), "offset of s2")
        for _ in range(n):
            out.append(out[-offset])
    need(len(out) == size, "s2 gives more than it says")
    return c.end(bytes(out))
