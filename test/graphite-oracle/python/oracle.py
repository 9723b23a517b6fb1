"""Answers requests with graphite-web itself. Each line of the input is a JSON object, each line of the output an answer:

{"series": {name: {"start", "step", "values"}}, "events": [[time, [tag]]]}   replaces the data; no answer
{"query": "target=a.b&from=0&until=60&format=json"}                          [status, text]
{"query": ..., "deviations": ["steps"]}                                      the same with deviations that deviations.py has
{"functions": true}                                                          the table of functions
"""
import base64
import inspect
import json
import os
import signal
import sys

os.environ.update(DJANGO_SETTINGS_MODULE="graphite.settings", GRAPHITE_SETTINGS_MODULE="oracle_settings")
import django

django.setup()

from django.test import RequestFactory

import graphite.render.functions as functions
from graphite.functions import PieFunctions, SeriesFunctions
from graphite.render.views import renderView
from graphite.util import epoch, epoch_to_dt

import deviations
import memory


class Event:
    def __init__(self, when):
        self.when = when


def find_events(start, end, tags=None, **_):
    for at, has in memory.EVENTS:
        if epoch(start) <= at <= epoch(end) and (not tags or all(t in has for t in tags)):
            yield Event(epoch_to_dt(at))


functions.models.Event.find_events = staticmethod(find_events)


def describe(name, f):
    signature = str(inspect.signature(f)).replace("requestContext, ", "").replace("(requestContext)", "()")
    params = [p.toJSON() for p in getattr(f, "params", [])]
    for p in params:
        if p.get("default") == float("inf"):  # which is not JSON
            p["default"] = None
    return {"name": name, "function": name + signature, "group": f.group, "params": params}


class Late(BaseException):
    """Ends a request that graphite-web would never end."""


def late(*_):
    raise Late("graphite-web takes more than %d seconds of CPU" % MOST)


MOST = 10
signal.signal(signal.SIGVTALRM, late)


def answer(q):
    if "functions" in q:
        return {kind: [describe(n, f) for n, f in sorted(all().items())] for kind, all in (("series", SeriesFunctions), ("pie", PieFunctions))}
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST)
    try:
        with deviations.made(q.get("deviations") or []):
            r = renderView(RequestFactory().get("/render?" + q["query"]))
        try:
            return [r.status_code, r.content.decode()]
        except UnicodeDecodeError:
            return [r.status_code, base64.b64encode(r.content).decode()]
    except (Exception, Late) as e:
        return [599, type(e).__name__ + ": " + str(e)]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


for line in sys.stdin:
    q = json.loads(line)
    if "series" in q:
        memory.SERIES.clear()
        memory.SERIES.update({n: (s["start"], s["step"], [None if v is None else float(v) for v in s["values"]]) for n, s in q["series"].items()})
        memory.EVENTS[:] = [(at, tags) for at, tags in q.get("events", [])]
        continue
    print(json.dumps(answer(q)), flush=True)
