"""Pickles requests of carbonlink in all protocols, with the beginning of what the test's source has to answer."""
import json, pickle

two = '[[1700000000.0 1.5] [1700000060.0 -2.0]]'
cases = [
    (dict(type='cache-query', metric='a.b'), '[datapoints %s]' % two),
    (dict(type='cache-query', metric='käse.日本'), '[datapoints []]'),
    (dict(type='cache-query-bulk', metrics=['a.b', 'c', 'a.b']), '[datapointsByMetric [a.b %s c [] a.b %s]]' % (two, two)),
    (dict(type='cache-query-bulk', metrics=('a.b',)), '[datapointsByMetric [a.b %s]]' % two),
    (dict(type='cache-query-bulk', metrics=[]), '[datapointsByMetric []]'),
    (dict(type='get-metadata', metric='a.b', key='aggregationMethod'), '[value sum]'),
    (dict(type='get-metadata', metric='a.b', key='other'), '[error '),
    (dict(type='set-metadata', metric='a.b', key='aggregationMethod', value='max'), '[error '),
    (dict(type='cache-query', metric='fails'), '[error '),
    (dict(type='cache-query', metric=7), '[error '),
    (dict(type='other'), '[error '),
    (dict(metric='a.b'), '[error '),
    (['cache-query'], '[error '),
    (object(), '[error '),
]
for request, want in cases:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        print(json.dumps({'Pickle': pickle.dumps(request, protocol=protocol).hex(), 'Want': want}))
