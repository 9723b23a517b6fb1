"""Makes random cases for aggregator.py: aggregation_cases.py SEED N."""
import json, random, sys

seed, n = int(sys.argv[1]), int(sys.argv[2])
METHODS = 'sum avg min max count p50 p75 p80 p90 p95 p99 p999'.split()
TEMPLATES = [
    ('<env>.all.<m>', '<env>.*.<m>'), ('<env>.<rest>.total', '<env>.host.<<rest>>'), ('all.<m>', '*.*.<m>'),
    ('<env>.<h>.<m>', '<env>.<h>.<m>'), ('fixed', '<env>.h1.*'), ('all.<m>', '<e>.<h>.<m>'),
]
for i in range(n):
    r = random.Random(seed * 1000003 + i)
    rules = []
    for _ in range(r.randint(1, 4)):
        out, inp = r.choice(TEMPLATES)
        rules.append('%s (%d) = %s %s' % (out, r.choice([1, 2, 5, 10, 30, 60]), r.choice(METHODS), inp))
    rewrite = r.choice(['', '', '[pre]\n^x- =\n[post]\n\\.m1$ = .one\n', '[pre]\n^(a|b)\\. = c.\n', '[post]\n^all = none\n'])
    now, points = 1700000000 + r.randint(0, 100), []
    for _ in range(r.randint(1, 120)):
        now += r.choice([0, 0, 0, 1, 1, 2, 7, 40])
        t = now - r.choice([0, 0, 0, 0, 1, 3, 11, 61, 400, -5]) if r.random() < 0.97 else r.choice([0, -7, 5])
        v = r.choice([r.randint(-5, 5), r.random() * 1e3, r.gauss(0, 1e-7), -0.0, 0.1, 1e300, -1e300])
        path = '%s%s.%s.%s' % (r.choice(['', '', 'x-']), r.choice('ab'), r.choice(['h1', 'h2', 'host']), r.choice(['m1', 'm2', 'm1.x']))
        points.append([now, path, t, v])
    print(json.dumps({'aggregation': '\n'.join(rules) + '\n', 'rewrite': rewrite, 'forward': r.random() < 0.7, 'intervals': r.choice([5, 5, 1, 0, 2]),
                      'writeback': r.choice([None, None, 1, 3, 20]), 'points': points, 'until': now + 700}))
