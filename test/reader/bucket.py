#!/usr/bin/env python3
"""Reads a bucket of Shale in a folder, checks its records, and prints the sorted ids of the visible blocks.

It is written from docs/format-bucket.md alone, as reader.py is from docs/format.md. The numbers in comments are sections there.
"""
import hashlib, json, os, sys, time
sys.dont_write_bytecode = True
import xxhash
from reader import M64, crc32c, footer, need

RECORD = {"version", "id", "committed", "attempt", "blocks", "replaces", "covered", "skipped", "deletion", "cancels", "clean", "alone"}
COVERED = {"node", "epoch", "from", "to", "appended", "closed"}
BLOCK = {"id", "signal", "group", "level", "resolution", "sources", "order_lo", "order_hi", "min_time", "max_time", "key_min",
         "key_max", "series", "samples", "bytes", "tenant_count", "first_tenant", "last_tenant", "first_key", "last_key",
         "tenants", "generation", "created"}
LINES = ["lines", "line_bytes"]
ROLLUP = ["base", "policies"]
SECOND = 1_000_000_000
SIGNALS = {"metrics": 1, "logs": 2}

def uvarint(x):
    return bytes([x]) if x < 128 else bytes([x & 127 | 128]) + uvarint(x >> 7)

def text(s):
    return uvarint(len(s.encode())) + s.encode()

def be64(*numbers):
    return b"".join((n & M64).to_bytes(8, "big") for n in numbers)

def digest(b):
    return hashlib.sha256(b).hexdigest()[:32]

def ends(ids):
    return b"".join(i.encode() + b"\0" for i in sorted(ids))

def block_ids(b, record, objects):  # 2: as the number among several blocks is not in the record, any of them
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(b["min_time"] // SECOND))
    signal = SIGNALS[b["signal"]]
    for number in range(1000):
        if b["level"] == 0:
            s, = b["sources"]
            h = text(s["node"]) + bytes([signal]) + text(b["group"])
            h += be64(s["epoch"], b["min_time"], b["max_time"], s["seq_lo"], s["seq_hi"], number)
        else:
            of = record["replaces"] if b["resolution"] == 0 else [b["base"], "rollup", b["policies"], str(b["created"])]
            h = b"".join(map(text, sorted(of))) + bytes([signal])
            h += be64(b["min_time"], b["max_time"], number, b["generation"], b["bytes"])
            h += xxhash.xxh3_128_digest(objects[b["id"]])
        yield f"{digest(h)}-{at}-{b['signal']}"

def check_block(b, record, objects, seed):  # 3
    need(BLOCK - {"tenants"} <= set(b) <= BLOCK | set(LINES + ROLLUP), f"members of {b['id']}")
    need(b["id"] in block_ids(b, record, objects), f"id of {b['id']}")
    need(all((x in b) == (b["resolution"] > 0) for x in ROLLUP) and b["order_lo"] <= b["order_hi"], f"resolution and order of {b['id']}")
    _, key_seed, signal, _, held, tenants = footer(objects[b["id"]])
    names = [t[0].decode() for t in tenants]
    times = [t for tenant in tenants for t in tenant[6:]]
    sources = [[s["node"].encode(), s["epoch"], s["seq_lo"], s["seq_hi"]] for s in b["sources"]]
    said = (b["signal"], sources, b["min_time"], b["max_time"], b["series"], b["samples"], b["bytes"], b["tenant_count"],
            b["first_tenant"], b["last_tenant"], b.get("tenants", names if len(names) > 512 else None))
    is_so = (["metrics", "logs"][signal - 1], held, min(times), max(times), sum(t[1] for t in tenants),
             sum(t[2] for t in tenants), len(objects[b["id"]]), len(names), names[0], names[-1], names)
    lines = [b.get(x, 0) for x in LINES]
    need(not any(lines) or lines == [sum(t[i] for t in tenants) for i in (4, 5)], f"{b['id']} has other lines than {lines}")
    need(said == is_so and key_seed == seed, f"the record of {b['id']} says {said}, the block {is_so}")

def check_ship(r, covered):  # 3 and 4
    n = int(r["id"][5:])
    need(r["id"] == f"ship-{n:016d}" and n > 0 and len(r["attempt"].split("/")) == 3 and r.keys().isdisjoint({"replaces", "deletion"}), r["id"])
    need(all((b["level"], b["order_lo"], b["order_hi"]) == (0, n, n) for b in r.get("blocks", ())), f"order of {r['id']}")
    need(len(r["covered"]) == len({(v["node"], v["epoch"]) for v in r["covered"]}) > 0, f"journals of {r['id']}")
    for v in r["covered"]:
        need(set(v) == COVERED and 1 <= v["from"] <= v["to"] + 1, f"coverage of {r['id']}")
        covered.setdefault((v["node"], v["epoch"]), []).append((n, v["from"], v["to"]))
    return n

def check_coverage(covered, ships):  # 4: the ship before may be collected
    for ranges in covered.values():
        ranges.sort()
        for (n, _, to), (m, begin, _) in zip(ranges, ranges[1:]):
            need(begin == to + 1 or begin > to and not set(range(n + 1, m)) <= ships, f"ships {n} and {m} do not follow each other")

def bucket(folder):
    def read(*path):
        with open(os.path.join(folder, *path), "rb") as file:
            return file.read()
    def sealed(*path):
        line, _, rest = read(*path).partition(b"\n")
        need(line == b"crc32c %08x" % crc32c(rest), f"checksum of {path[-1]}")
        return json.loads(rest)
    seed = sealed("seed")  # 1
    need(set(seed) == {"version", "seed"} and seed["version"] == 1 and len(seed["seed"]) == 16, "seed")
    objects = {name: read("blocks", name) for name in os.listdir(os.path.join(folder, "blocks"))}
    blocks, hidden, alone, merged, ships, covered = {}, set(), set(), set(), set(), {}
    for name in os.listdir(os.path.join(folder, "catalog")):
        r = sealed("catalog", name)
        rolled = "alone" in r or any(b["resolution"] for b in r.get("blocks", ()))
        need(set(r) <= RECORD and r["version"] == 2 + rolled and r["id"] + ".json" == name, f"record {name}")
        of, gone = [b["id"] for b in r.get("blocks", ())], r.get("replaces", ())
        hidden.update(gone)
        alone.update(r.get("alone", ()))
        if any(b["resolution"] == 0 for b in r.get("blocks", ())):
            merged.update(gone)
        clean = [f"{x['block']} {x['generation']}" for x in r.get("clean", ())]
        expected = {"merged": f"merged-{digest(ends(gone) + bytes(1) + ends(of))}", "expired": f"expired-{digest(bytes(1).join(map(ends, [gone] + [r['alone']] if 'alone' in r else [gone])))}",
                    "rollups": f"rollups-{digest(ends(gone) + bytes(1) + ends(of))}",
                    "delete": f"delete-{r.get('deletion', {}).get('generation', 0):016d}", "cancel": f"cancel-{r.get('cancels', 0):016d}",
                    "clean": f"clean-{digest(ends(clean))}"}
        if r["id"].startswith("ship-"):
            ships.add(check_ship(r, covered))
        else:
            need(r["id"] == expected.get(r["id"].split("-")[0], of[0] if len(of) == 1 else None), f"id of record {name}")
            need(r.keys().isdisjoint({"attempt", "covered", "skipped"}), f"members of {name}")
        blocks.update((b["id"], (b, r)) for b in r.get("blocks", ()))
    check_coverage(covered, ships)
    for id, (b, r) in sorted(blocks.items()):  # 4
        if id in objects:  # what is hidden may be deleted
            check_block(b, r, objects, int(seed["seed"], 16))
        base = b.get("base")
        dead = base and (base not in blocks or base in hidden) and (id not in alone or base in merged)
        if id not in hidden and not dead:
            need(id in objects, f"{id} is visible and not there")
            print(id)

if __name__ == "__main__":
    bucket(sys.argv[1])
