"""Says what carbon's own classes make of paths: JSON lines in, JSON lines out.

{"blacklist": text, "whitelist": text, "rewrite": text, "aggregation": text, "paths": [...]}
gives for each path [verdict, path after pre, [aggregates], path after post].
"""
import json, os, sys, tempfile

from carbon.conf import settings
settings.update(CACHE_METRIC_NAMES_TTL=0, CACHE_METRIC_NAMES_MAX=0, LOG_AGGREGATOR_MISSES=False)
from carbon.regexlist import RegexList
from carbon.rewrite import _RewriteRuleManager
from carbon.aggregator import rules as agg

for line in sys.stdin:
    q = json.loads(line)
    d = tempfile.mkdtemp()

    def put(name):
        path = os.path.join(d, name)
        with open(path, 'w') as f:
            f.write(q.get(name, ''))
        return path

    black, white = RegexList(), RegexList()
    for l, name in ((black, 'blacklist'), (white, 'whitelist')):
        l.list_file = put(name)
        l.read_list()
    rewrite = _RewriteRuleManager()
    rewrite.rules_file = put('rewrite')
    rewrite.read_rules()
    manager = type(agg.RuleManager)()
    manager.rules_file = put('aggregation')
    manager.read_rules()
    out = []
    for path in q['paths']:
        verdict = 'blacklisted' if black and path in black else 'not_whitelisted' if white and path not in white else ''
        pre = path
        for r in rewrite.rules('pre'):
            pre = r.apply(pre)
        aggregates = [a for a in (r.get_aggregate_metric(pre) for r in manager.rules) if a is not None]
        post = pre
        for r in rewrite.rules('post'):
            post = r.apply(post)
        out.append([verdict, pre, aggregates, post])
    print(json.dumps(out))
