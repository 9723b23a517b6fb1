"""Answers requests about tags with graphite-web's own tag database, in memory.

Reads {"series": [...]} and then {"path": ..., "params": [[name, value], ...]}, a line each, and writes the
status and the body of each response as a line of JSON.
"""
import json
import os
import sys
import tempfile
import types

d = tempfile.mkdtemp()
settings = types.ModuleType("tags_settings")
settings.__dict__.update(
    SECRET_KEY="x", LOG_DIR=d, STORAGE_DIR=d, WHISPER_DIR=d, CONF_DIR=d, INDEX_FILE=d + "/index", TIME_ZONE="UTC", CARBONLINK_HOSTS=[],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}},
)
sys.modules["tags_settings"] = settings
os.environ.update(DJANGO_SETTINGS_MODULE="graphite.settings", GRAPHITE_SETTINGS_MODULE="tags_settings")
import django

django.setup()
from django.core.management import call_command
from django.test import RequestFactory
from django.urls import resolve
from django.utils.http import urlencode

call_command("migrate", run_syncdb=True, verbosity=0)
from graphite.storage import STORE

for line in sys.stdin:
    q = json.loads(line)
    if "series" in q:
        for s in q["series"]:
            STORE.tagdb.tag_series(s)
        continue
    match = resolve(q["path"])
    r = match.func(RequestFactory().get(q["path"] + "?" + urlencode(q["params"])), *match.args, **match.kwargs)
    body = json.loads(r.content.decode())
    print(json.dumps([r.status_code, body]))
