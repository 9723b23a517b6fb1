"""make.py DIR COUNT NOW: makes files with the library whisper of PyPI below DIR/whisper, of several layouts.

Of a hundred files one is truncated, one has a random header, one is empty, and one has slots in the future. DIR/expected.jsonl
gets what whisper.fetch returns of all archives of the others: [name, archives, method, xff, [[first, end, step, values]...]].
"""
import json
import os
import random
import struct
import sys

import whisper

ROOT, COUNT, NOW = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SMALL = len(sys.argv) > 4  # layouts of few points, for testdata
LAYOUTS = [
    [(60, 1440), (300, 2016), (3600, 2160)], [(10, 2160), (60, 1440), (600, 1000)], [(60, 10080)], [(1, 3600), (60, 1440)],
] if not SMALL else [[(60, 40), (300, 20), (3600, 6)], [(10, 30), (60, 20), (600, 8)], [(60, 50)], [(1, 60), (60, 12)]]
METHODS = ["average", "sum", "last", "max", "min", "avg_zero", "absmax", "absmin"]


def fill(path, layout, r):
    kind = r.randrange(4)

    def value():
        return [float(r.randrange(1000)), round(r.gauss(50, 10), 2), r.random(), 7.0][kind]

    step, points = layout[0]
    for s, p in reversed(layout[1:]):  # what is older than the finest archive
        old = [(t, value()) for t in range(NOW - s * p + s, NOW - step * 60, s) if r.random() > 0.1]
        if old:
            whisper.update_many(path, old, now=NOW)
    t, batch = NOW - min(step * points - 1, step * 1500), []
    while t <= NOW:
        if r.random() > 0.05:
            batch.append((t - r.randrange(step) // 2 if r.random() < 0.1 else t, value()))
        if len(batch) >= 500:
            whisper.update_many(path, batch, now=t)
            batch = []
        t += step
    if batch:
        whisper.update_many(path, batch, now=NOW)


def spoil(path, n, r):
    """Returns whether the file can no longer be read."""
    if n % 100 == 7:
        os.truncate(path, os.path.getsize(path) - r.randrange(1, 500))
    elif n % 100 == 17:
        with open(path, "r+b") as f:
            f.write(b"\xff" * 16)
    elif n % 100 == 27:
        os.truncate(path, 0)
    elif n % 100 == 37:
        with open(path, "r+b") as f:
            offset, step = struct.unpack("!LL", f.read(24)[16:24])
            for i in range(5):
                f.seek(offset + 12 * (20 + i))
                f.write(struct.pack("!Ld", NOW + step * 100000 + i, 1e99))
        return False
    else:
        return False
    return True


with open(os.path.join(ROOT, "expected.jsonl"), "w") as expected:
    for n in range(COUNT):
        r = random.Random(n)
        layout, method, xff = LAYOUTS[n % 4], METHODS[r.randrange(8)], r.choice([0, 0.5, 0.5, 0.3, 1])
        name = f"servers.web{n // 50:04d}.cpu.cpu{n % 50}.idle"
        path = os.path.join(ROOT, "whisper", *name.split(".")) + ".wsp"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        whisper.create(path, layout, xFilesFactor=xff, aggregationMethod=method)
        fill(path, layout, r)
        if spoil(path, n, r):
            continue
        answers = []
        for s, p in layout:
            got = whisper.fetch(path, NOW - s * p, NOW, now=NOW)
            answers.append([*got[0], got[1]])
        expected.write(json.dumps([name, layout, method, xff, answers]) + "\n")
