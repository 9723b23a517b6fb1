# Uses the Python client pymemcache against a server.
import sys
from pymemcache.client.base import Client

host, port = sys.argv[1].rsplit(":", 1)
c = Client((host, int(port)), timeout=20, connect_timeout=20)
large = b"v" * 900_000
assert c.set("py-a", b"1", expire=1000, noreply=False)
assert c.set("py-large", large, noreply=False)
assert c.set("py-n", b"9", noreply=False)
assert c.get_many(["py-a", "py-none", "py-large"]) == {"py-a": b"1", "py-large": large}
assert not c.add("py-a", b"x", noreply=False)
assert c.incr("py-n", 3, noreply=False) == 12
assert c.decr("py-n", 100, noreply=False) == 0
value, cas = c.gets("py-a")
assert c.cas("py-a", b"2", cas, noreply=False) is True
assert c.cas("py-a", b"3", cas, noreply=False) is False
assert c.cas("py-none", b"3", cas, noreply=False) is None
assert c.append("py-a", b"4", noreply=False) and c.prepend("py-a", b"1", noreply=False)
assert c.get("py-a") == b"124"
assert c.touch("py-a", 500, noreply=False)
assert c.delete("py-n", noreply=False) and not c.delete("py-n", noreply=False)
c.set("py-quiet", b"q")  # without a response
assert c.get("py-quiet") == b"q"
assert c.version().startswith(b"1.6.")
assert c.stats()[b"curr_items"] >= 3
c.set_many({"py-%d" % n: b"%d" % n for n in range(100)}, noreply=False)
assert len(c.get_many(["py-%d" % n for n in range(200)])) == 100
print("ok")
