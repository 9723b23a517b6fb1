"""A graphite-web over whisper files, whose clock is that of its caller. It is asked by lines of JSON, and answers with one each.

{"create": {name: [[[step, points], ...], method, xFilesFactor]}}  makes files
{"now": t, "points": {name: [[t, value], ...]}}                    writes points at a time
{"now": t, "url": path?query}                                      renders at a time
"""
import json, os, shutil, sys, tempfile, types

d = tempfile.mkdtemp(prefix="graphite-archives-")
settings = types.ModuleType("archives_settings")
settings.__dict__.update(
    SECRET_KEY="x", LOG_DIR=d, STORAGE_DIR=d, WHISPER_DIR=d + "/whisper", STANDARD_DIRS=[d + "/whisper"], CONF_DIR=d, INDEX_FILE=d + "/index", TIME_ZONE="UTC",
    CARBONLINK_HOSTS=[], ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": d + "/db"}},
    CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}},
)
sys.modules["archives_settings"] = settings
os.environ.update(DJANGO_SETTINGS_MODULE="graphite.settings", GRAPHITE_SETTINGS_MODULE="archives_settings")

import django
django.setup()
import whisper
from django.test import RequestFactory
from django.urls import resolve


class Clock:
    """time, for whisper."""
    now = 0

    def __getattr__(self, name):
        return getattr(sys.modules["time"], name)

    def time(self):
        return self.now


clock = whisper.time = Clock()


def path(name):
    return d + "/whisper/" + name.replace(".", "/") + ".wsp"


def answer(q):
    clock.now = q.get("now", 0)
    for name, (archives, method, xff) in q.get("create", {}).items():
        os.makedirs(os.path.dirname(path(name)), exist_ok=True)
        whisper.create(path(name), [tuple(a) for a in archives], xff, aggregationMethod=method)
    for name, points in q.get("points", {}).items():
        whisper.update_many(path(name), [tuple(p) for p in points])
    if "url" in q:
        match = resolve(q["url"].split("?")[0])
        r = match.func(RequestFactory().get(q["url"]), *match.args, **match.kwargs)
        return [r.status_code, r.content.decode()]
    return [200, ""]


try:
    for line in sys.stdin:
        try:
            a = answer(json.loads(line))
        except Exception as e:
            a = [599, "%s: %s" % (type(e).__name__, e)]
        print(json.dumps(a), flush=True)
finally:
    shutil.rmtree(d)
