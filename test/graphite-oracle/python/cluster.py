"""Draws the same points by two graphite-webs: one reads its own whisper files, one has Shale in CLUSTER_SERVERS.

cluster.py SHALE: SHALE is the program. It prints how many responses were equal, and exits with 1 on a difference.
cluster.py web: one graphite-web, configured by the environment, which answers a line "path?query" each.
"""
import json, os, random, shutil, socket, subprocess, sys, tempfile, time, types, urllib.parse, urllib.request

STEP, POINTS = 60, 300


def web():
    d = os.environ["DIR"]
    settings = types.ModuleType("cluster_settings")
    settings.__dict__.update(
        SECRET_KEY="x", LOG_DIR=d, STORAGE_DIR=d, WHISPER_DIR=d + "/whisper", STANDARD_DIRS=[d + "/whisper"], CONF_DIR=d, INDEX_FILE=d + "/index", TIME_ZONE="UTC",
        CARBONLINK_HOSTS=[], ALLOWED_HOSTS=["*"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": d + "/db"}},
        CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}},
    )
    if "SERVER" in os.environ:
        settings.__dict__.update(CLUSTER_SERVERS=[os.environ["SERVER"]], REMOTE_EXCLUDE_LOCAL=False)
    sys.modules["cluster_settings"] = settings
    os.environ.update(DJANGO_SETTINGS_MODULE="graphite.settings", GRAPHITE_SETTINGS_MODULE="cluster_settings")
    import django
    django.setup()
    from django.core.management import call_command
    from django.test import RequestFactory
    from django.urls import resolve
    from graphite.storage import STORE
    call_command("migrate", run_syncdb=True, verbosity=0)
    tagged = os.environ.get("TAGGED", "").split()
    for name in tagged:
        STORE.tagdb.tag_series(name)
    for line in sys.stdin:
        url = line.strip()
        try:
            match = resolve(url.split("?")[0])
            r = match.func(RequestFactory().get(url), *match.args, **match.kwargs)
            answer = [r.status_code, r.content.decode()]
        except Exception as e:
            answer = [599, "%s: %s" % (type(e).__name__, e)]
        print(json.dumps(answer), flush=True)


class Web:
    def __init__(self, d, **env):
        self.p = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "web"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, DIR=d, PYTHONDONTWRITEBYTECODE="1", **env))

    def ask(self, url):
        self.p.stdin.write(url + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())


def data():
    r = random.Random(1)
    names = ["servers.%s%d.cpu.%s" % (kind, i, x) for kind in ["web", "db"] for i in range(1, 6) for x in ["idle", "user", "größe"]]
    names += ["counter.%s" % x for x in "abc"] + ["disk.used;dc=%s;host=h%d" % (dc, i) for dc in ["eu", "us"] for i in range(3)]
    first = int(time.time()) // STEP * STEP - (POINTS + 2) * STEP
    series = {}
    for n in names:
        total = 0
        points = []
        for i in range(POINTS):
            total += r.randrange(9)
            if r.random() < 0.9 and not (n.endswith("db3.cpu.idle") and 100 < i < 160):
                points.append((first + i * STEP, float(total) if n.startswith("counter") else round(r.uniform(-50, 100), r.randrange(6))))
        series[n] = points
    return series, first


TARGETS = """
servers.*.cpu.idle ;; servers.{web,db}[1-3].cpu.* ;; *.*.*.größe ;; counter.* ;; nothing.* ;; servers.web?.cpu.us* ;; sumSeries(servers.*.cpu.idle)
averageSeries(servers.web*.cpu.*) ;; movingAverage(counter.*,'10min') ;; movingMedian(servers.web1.cpu.*,7) ;; timeShift(servers.web1.cpu.idle,'1h')
timeStack(counter.a,'30min',0,3) ;; derivative(counter.*) ;; perSecond(counter.*) ;; nonNegativeDerivative(counter.a) ;; integral(servers.db3.cpu.idle)
summarize(counter.*,'15min','max') ;; summarize(counter.*,'1h','sum',true) ;; smartSummarize(counter.*,'30min','last') ;; hitcount(counter.*,'20min')
holtWintersForecast(servers.web1.cpu.idle,'2h','1h') ;; keepLastValue(servers.db3.cpu.idle,5) ;; asPercent(servers.web*.cpu.idle) ;; highestMax(servers.*.cpu.*,3)
aliasByNode(servers.*.cpu.user,1,-1) ;; groupByNode(servers.*.cpu.*,1,'sum') ;; divideSeries(servers.web1.cpu.idle,servers.web1.cpu.user) ;; stdev(counter.*,5)
seriesByTag('name=disk.used') ;; seriesByTag('dc=eu','host!=h1') ;; groupByTags(seriesByTag('name=disk.used'),'max','dc') ;; aliasByTags(seriesByTag('host=~h[01]'),'host')
stdev(seriesByTag('name=disk.used','dc=us'),4) ;; template(servers.$h.cpu.idle,h='web1') ;; applyByNode(servers.*.cpu.idle,1,'maxSeries(%.cpu.*)') ;; linearRegression(counter.a)
useSeriesAbove(transformNull(servers.*.cpu.idle),99,'idle','user') ;; removeEmptySeries(servers.*.cpu.idle) ;; consolidateBy(counter.*,'max') ;; interpolate(servers.db3.cpu.idle,100)
""".replace("\n", ";;")


def main(shale):
    sys.path.insert(0, os.path.dirname(__file__))
    import whisper
    d = tempfile.mkdtemp(prefix="graphite-cluster-")
    series, first = data()
    os.environ.update(DJANGO_SETTINGS_MODULE="graphite.settings")
    os.makedirs(d + "/own/whisper"), os.makedirs(d + "/clustered/whisper")
    from hashlib import sha256
    for name, points in series.items():
        path = name.replace(".", "/")
        if ";" in name:  # carbon's path of a series with tags
            h = sha256(name.encode()).hexdigest()
            path = "_tagged/%s/%s/%s" % (h[:3], h[3:6], name.replace(".", "_DOT_"))
        path = d + "/own/whisper/" + path + ".wsp"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        whisper.create(path, [(STEP, 86400 // STEP)])
        whisper.update_many(path, points)
    with open(d + "/storage-schemas.conf", "w") as f:
        f.write("[all]\npattern = .\nretentions = %ds:1d\n" % STEP)
    ports = []
    held = [socket.socket() for _ in range(2)]
    for s in held:
        s.bind(("127.0.0.1", 0))
        ports.append(s.getsockname()[1])
    for s in held:
        s.close()
    server = subprocess.Popen([shale, "serve", "--data-dir", d + "/data", "--http-listen", "127.0.0.1:%d" % ports[0], "--graphite-listen", "127.0.0.1:%d" % ports[1],
                               "--graphite-pickle-listen", "", "--graphite.storage-schemas", d + "/storage-schemas.conf", "--memory", "256MiB"],
                              stdout=open(d + "/out", "w"), stderr=subprocess.STDOUT)
    try:
        return compare(d, server, ports, series, first)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(d)


def get(port, path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path)) as r:
        return r.read().decode()


def compare(d, server, ports, series, first):
    lines = "".join("%s %r %d\n" % (n, v, at) for n, points in series.items() for at, v in points).encode()
    for _ in range(300):
        try:
            with socket.create_connection(("127.0.0.1", ports[1])) as s:
                s.sendall(lines)
                s.shutdown(socket.SHUT_WR)
                s.recv(1)
            break
        except OSError:
            time.sleep(0.2)
    else:
        raise SystemExit("Shale does not listen: " + open(d + "/out").read())
    for _ in range(300):  # until the last series has all its points
        last = list(series)[-1]
        q = urllib.parse.urlencode({"target": "seriesByTag('name=disk.used','dc=us','host=h2')", "from": first - STEP, "until": first + POINTS * STEP, "format": "json"})
        got = json.loads(get(ports[0], "/render?" + q))
        if got and sum(v is not None for v, _ in got[0]["datapoints"]) == len(series[last]):
            break
        time.sleep(0.1)
    own = Web(d + "/own", TAGGED=" ".join(n for n in series if ";" in n))
    clustered = Web(d + "/clustered", SERVER="127.0.0.1:%d%s" % (ports[0], os.environ.get("PARAMS", "")))
    r = random.Random(2)
    windows = [(first - STEP, first + POINTS * STEP), (first + 60 * STEP, first + 180 * STEP), (first + 1000, first + 9000), (first + 100 * STEP, first + 103 * STEP)]
    urls = []
    for target in filter(None, (t.strip() for t in TARGETS.split(";;"))):
        for start, end in windows:
            for more in [{}, {"maxDataPoints": r.choice([10, 50, 77])}]:
                urls.append("/render?" + urllib.parse.urlencode(dict({"target": target, "from": start, "until": end, "format": "json", "noCache": 1}, **more)))
    urls += ["/metrics/find?" + urllib.parse.urlencode({"query": q, "format": f}) for q in ["[a-z]*", "servers.*", "servers.web1.*", "servers.*.cpu.{idle,user}", "count*", "none.*", "*.*.*.gr*"] for f in ["nodelist", "completer"]]
    urls += ["/metrics/expand?" + urllib.parse.urlencode({"query": q, "leavesOnly": l}) for q in ["servers.w*", "servers.*.cpu.idle", "[a-z]*.*"] for l in [0, 1]]
    urls += ["/tags/autoComplete/tags?" + q for q in ["", "tagPrefix=d", "expr=name%3Ddisk.used", "expr=dc%3Deu&tagPrefix=h"]]
    urls += ["/tags/autoComplete/values?" + q for q in ["tag=dc", "tag=host&valuePrefix=h", "tag=host&expr=dc%3Deu", "tag=none"]]
    same, empty = 0, 0
    wrong = []
    for url in urls:
        a, b = own.ask(url), clustered.ask(url)
        x, y = [sort(json.loads(t[1])) if t[0] == 200 else t for t in (a, b)]
        if x == y and a[0] == 200:
            same += 1
            empty += x == [] or x == {}
        else:
            wrong.append((url, a, b))
    for url, a, b in wrong[:10]:
        print(urllib.parse.unquote_plus(url), "\n  own files:", str(a)[:400], "\n  Shale:    ", str(b)[:400])
    print("%d responses of graphite-web over Shale are equal to those over its whisper files, %d are not; %d are empty" % (same, len(wrong), empty))
    own.p.stdin.close(), clustered.p.stdin.close()
    return not wrong and empty < same / 5


def sort(v):
    """Series of a wildcard come in the order of a folder, or in that of the server."""
    if isinstance(v, list) and v and isinstance(v[0], dict):
        return sorted(v, key=lambda s: json.dumps(s, sort_keys=True))
    if isinstance(v, dict):
        return {k: sort(x) for k, x in v.items()}
    return v


if __name__ == "__main__":
    if sys.argv[1] == "web":
        web()
    elif not main(sys.argv[1]):
        sys.exit(1)
