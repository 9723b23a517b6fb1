"""Says what the pipeline of carbon-aggregator makes of points, on a clock of its own: JSON lines in, JSON lines out.

{"aggregation": text, "rewrite": text, "forward": bool, "intervals": n, "writeback": n or null,
 "points": [[now, path, time, value], ...], "until": now}
gives [[now, path, time, value], ...]: what goes out, sorted, since carbon has no order within a second.
"""
import json, os, sys, tempfile, types

from carbon.conf import settings
settings.update(CACHE_METRIC_NAMES_TTL=0, CACHE_METRIC_NAMES_MAX=0, LOG_AGGREGATOR_MISSES=False)
from twisted.internet import task
from carbon import events, instrumentation, pipeline, state
from carbon.aggregator import buffers, rules as agg
from carbon.aggregator.processor import AggregationProcessor
from carbon.rewrite import RewriteProcessor, RewriteRuleManager

state.events, state.instrumentation = events, instrumentation
clock, out = None, []


def looping(f):
    call = task.LoopingCall(f)
    call.clock = clock
    return call


class Sink(pipeline.Processor):
    plugin_name = 'sink'

    def process(self, metric, datapoint):
        out.append([int(clock.seconds()), metric, int(datapoint[0]), float(datapoint[1])])
        return ()


def failed(*args, **kwargs):
    raise


buffers.LoopingCall = looping
buffers.time = types.SimpleNamespace(time=lambda: clock.seconds())
pipeline.log.err = failed
state.pipeline_processors = [RewriteProcessor('pre'), AggregationProcessor(), RewriteProcessor('post'), Sink()]
state.pipeline_processors_generated = [Sink()]
events.metricGenerated.addHandler(pipeline.run_pipeline_generated)

for line in sys.stdin:
    q = json.loads(line)
    clock, out = task.Clock(), []
    d = tempfile.mkdtemp()

    def put(name):
        path = os.path.join(d, name)
        with open(path, 'w') as f:
            f.write(q.get(name, ''))
        return path

    settings.update(FORWARD_ALL=q['forward'], MAX_AGGREGATION_INTERVALS=q['intervals'], WRITE_BACK_FREQUENCY=q['writeback'])
    RewriteRuleManager.clear()
    RewriteRuleManager.rules_file, RewriteRuleManager.rules_last_read = put('rewrite'), 0.0
    RewriteRuleManager.read_rules()
    buffers.BufferManager.clear()
    agg.RuleManager.rules_file, agg.RuleManager.rules_last_read = put('aggregation'), 0.0
    agg.RuleManager.read_rules()
    clock.advance(q['points'][0][0])

    def forward_to(now):
        while clock.seconds() < now:
            clock.advance(1)

    for now, path, t, value in q['points']:
        forward_to(now)
        pipeline.run_pipeline(path, (float(t), float(value)))
    forward_to(q['until'])
    print(json.dumps(sorted(out)))
