"""Answers requests about events with graphite-web's own table of events, in memory.

Reads {"method": ..., "path": ..., "query": ..., "body": ...} a line, and writes the request with the status and
the body of the response as a line of JSON. test/graphite-oracle records internal/app/testdata/events.jsonl so.
"""
import json
import os
import sys
import tempfile
import types

d = tempfile.mkdtemp()
settings = types.ModuleType("events_settings")
settings.__dict__.update(
    SECRET_KEY="x", LOG_DIR=d, STORAGE_DIR=d, WHISPER_DIR=d, CONF_DIR=d, INDEX_FILE=d + "/index", TIME_ZONE="UTC", CARBONLINK_HOSTS=[],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}},
)
sys.modules["events_settings"] = settings
os.environ.update(DJANGO_SETTINGS_MODULE="graphite.settings", GRAPHITE_SETTINGS_MODULE="events_settings")
import django

django.setup()
from django.core.management import call_command
from django.test import RequestFactory
from django.urls import resolve

call_command("migrate", run_syncdb=True, verbosity=0)

for line in sys.stdin:
    q = json.loads(line)
    match = resolve(q["path"])
    url = q["path"] + "?" + q.get("query", "")
    r = RequestFactory().generic(q["method"], url, q.get("body", "").encode(), "application/json", HTTP_ACCEPT="application/json")
    try:
        r = match.func(r, *match.args, **match.kwargs)
        q["status"], q["answer"] = r.status_code, r.content.decode()
    except Exception as e:
        q["status"], q["answer"] = 500, type(e).__name__ + ": " + str(e)
    print(json.dumps(q, ensure_ascii=False), flush=True)
