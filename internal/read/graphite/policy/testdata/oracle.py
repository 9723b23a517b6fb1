"""Runs cases with the library whisper of PyPI: a line of JSON in, a line of JSON out.

A case has archives [[step, points]], method, xff, updates [[now, [[time, value]...]]...], and fetches
[[from, until, now]]. The answer has for each fetch null or [first, end, step, [value...]].
"""
import json
import os
import sys
import tempfile

import whisper

for line in sys.stdin:
    case = json.loads(line)
    path = os.path.join(tempfile.mkdtemp(), "a.wsp")
    whisper.create(path, [tuple(a) for a in case["archives"]], xFilesFactor=case["xff"], aggregationMethod=case["method"])
    for now, points in case["updates"]:
        whisper.update_many(path, [(t, float(v)) for t, v in points], now=now)
    answers = []
    for start, until, now in case["fetches"]:
        got = whisper.fetch(path, start, until, now=now)
        answers.append(got and [*got[0], got[1]])
    print(json.dumps(answers), flush=True)
    os.unlink(path)
    os.rmdir(os.path.dirname(path))
