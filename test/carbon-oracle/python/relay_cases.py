"""Makes random cases for relay.py: relay_cases.py SEED COUNT."""
import json, random, sys

r = random.Random(int(sys.argv[1]))
HOSTS = ['127.0.0.1', '10.0.0.%d', 'carbon-%d.example.com', '::1', 'fe80::%d', 'store_%d']


def destinations():
    out, seen = [], set()
    for _ in range(r.choice([1, 2, 3, 5, 8, 13])):
        host, instance = r.choice(HOSTS), r.choice([None, 'a', 'b', 'c', '1', 'cache-%d' % r.randrange(4)])
        host = host % r.randrange(4) if '%' in host else host
        if (host, instance) in seen:
            continue
        seen.add((host, instance))
        text = ('[%s]:%d' if ':' in host else '%s:%d') % (host, r.choice([2003, 2004, 2014]))
        out.append(text if instance is None else text + ':' + instance)
    return out


def name():
    node = lambda: r.choice(['servers', 'web', 'db', 'cpu', 'Load', 'käse', '日本', 'a-b', 'x_y', '0']) + r.choice(['', str(r.randrange(100))])
    path = '.'.join(node() for _ in range(r.randrange(1, 7)))
    if r.random() < 0.2:
        path += ';' + ';'.join('%s=%s' % (r.choice('abc'), node()) for _ in range(r.randrange(1, 3)))
    return path


def rules(all):
    text = '[default]\n%s = true\ndestinations = %s\n' % (r.choice(['default', 'Default']), r.choice(all))
    for i in range(r.randrange(6)):
        some = r.sample(all, r.randrange(1, min(3, len(all)) + 1))
        text += '\n[rule %d]\npattern = %s\ndestinations = %s\n' % (
            i, r.choice([r'^servers', r'\.CPU\d*$', 'web|db', r'[0-9]{2}', r'(?!web)', '=', r'^[^.]+\.[^.]+$', 'ÄSE|äse']), r.choice([',', ', ']).join(some))
        if r.random() < 0.5:
            text += 'continue = %s\n' % r.choice(['true', 'False', 'yes', '0'])
    if r.random() < 0.3:
        text += '\n[off]\ndefault = false\ndestinations = %s\n' % r.choice(all)
    return text


for _ in range(int(sys.argv[2])):
    all = destinations()
    conf = {'RELAY_METHOD': r.choice(['rules', 'consistent-hashing', 'aggregated-consistent-hashing', 'fast-hashing', 'fast-aggregated-hashing']),
            'DESTINATIONS': ', '.join(all), 'REPLICATION_FACTOR': r.choice([1, 1, 2, 3]), 'DIVERSE_REPLICAS': r.choice([True, False])}
    if r.random() < 0.7:
        conf['ROUTER_HASH_TYPE'] = r.choice(['carbon_ch', 'fnv1a_ch', 'mmh3_ch'])
    print(json.dumps({
        'conf': '[relay]\n' + ''.join('%s = %s\n' % kv for kv in conf.items()), 'rules': rules(all),
        'aggregation': '<a>.all (60) = sum <a>.*\n<a>.<b>.sum (10) = max <a>.<<b>>.cpu*\n', 'paths': [name() for _ in range(30)]}))
