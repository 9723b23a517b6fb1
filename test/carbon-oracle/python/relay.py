"""Says where carbon-relay sends paths, and what its clients write: JSON lines in, JSON lines out.

{"conf": text, "rules": text, "aggregation": text, "paths": [...]} gives a list for each path: its destinations, sorted.
{"points": [[path, time, value], ...]} gives what the clients of each protocol write, in hexadecimal digits.
"""
import json, os, sys, tempfile

from carbon.conf import defaults, settings
settings.update(CACHE_METRIC_NAMES_TTL=0, CACHE_METRIC_NAMES_MAX=0)
from carbon import client
from carbon import protobuf
from carbon.aggregator.rules import RuleManager
from carbon.routers import DatapointRouter
from carbon.util import parseDestinations


def put(d, name, text):
    path = os.path.join(d, name)
    with open(path, 'w') as f:
        f.write(text)
    return path


def where(q):
    d = tempfile.mkdtemp()
    settings.clear()
    settings.update(defaults)
    settings.update(CACHE_METRIC_NAMES_TTL=0, CACHE_METRIC_NAMES_MAX=0)
    settings.readFrom(put(d, 'carbon.conf', q['conf']), 'relay')
    settings['relay-rules'] = put(d, 'relay-rules.conf', q['rules'])
    settings['aggregation-rules'] = None  # it would be read again by a timer
    RuleManager.clear()
    RuleManager.rules_file, RuleManager.rules_last_read = put(d, 'aggregation-rules.conf', q['aggregation']), 0.0
    RuleManager.read_rules()
    router = DatapointRouter.plugins[settings.RELAY_METHOD](settings)
    for one in parseDestinations(settings.DESTINATIONS):
        router.addDestination(one)
    return [sorted({'%s %d %s' % one for one in router.getDestinations(p)}) for p in q['paths']]


class Line(client.CarbonLineClientProtocol):
    def __init__(self):
        self.out = b''

    def sendLine(self, line):
        self.out += line + b'\n'  # Twisted adds \r, too


def framed(base):
    class Framed(base):
        def __init__(self):
            self.out = b''

        def sendString(self, text):
            self.out += text
    return Framed


def wire(q):
    points = [(p, (float(t), float(v))) for p, t, v in q['points']]
    out = {}
    for name, cls in [('line', Line), ('pickle', framed(client.CarbonPickleClientProtocol)), ('protobuf', framed(protobuf.CarbonProtobufClientProtocol))]:
        c = cls()
        c._sendDatapointsNow(points)
        out[name] = c.out.hex()
    return out


for line in sys.stdin:
    q = json.loads(line)
    print(json.dumps(wire(q) if 'points' in q else where(q)))
