# -*- coding: utf-8 -*-
"""Makes golden.txt: pickles as real Pythons write them, what is in them, and what carbon makes of them.

Each Python writes its lines, and then carbon 1.1.10, on Python 2 and on Python 3, adds a column each:

    (python2.7 make_golden.py write; python3.13 make_golden.py write; cat by_others.txt) > a
    python2.7 make_golden.py carbon < a > b     # with carbon, Twisted and six on the path
    python3.11 make_golden.py carbon < b > golden.txt

Columns are set apart by tabs: the case, who wrote the pickle, the pickle in hexadecimal, what is in it, what carbon
stores on Python 2 and on Python 3. What is in it: n and the bits of a number, x and the bytes of a text, parentheses for
a tuple, brackets for a list, N, H for an integer beyond a float64, ? for what lies deeper; ! for all that must be
refused. Of a long column there is only its CRC-32, behind #. A column that says what the one above says is a single
double quote.
"""
from __future__ import print_function

import binascii
import datetime
import decimal
import math
import os
import pickle
import struct
import sys

PY2 = sys.version_info[0] == 2
if PY2:
    import cPickle

T = 1700000000


class Object(object):
    pass


class Call(object):
    def __reduce__(self):
        return (os.getcwd, ())


def utf8(s):
    return s.encode('utf-8')


def dump(v, depth=0):
    if depth > 8:
        return '?'
    if v is None:
        return 'N'
    if isinstance(v, (bool, int, float)) or PY2 and isinstance(v, long):
        try:
            return 'n' + binascii.hexlify(struct.pack('>d', float(v))).decode()
        except OverflowError:
            return 'H'
    if isinstance(v, bytes):
        return 'x' + binascii.hexlify(v).decode()
    if isinstance(v, type(u'')):
        return 'x' + binascii.hexlify(v.encode('utf-8', 'surrogatepass') if not PY2 else v.encode('utf-8')).decode()
    if isinstance(v, tuple):
        return '(' + ' '.join(dump(e, depth + 1) for e in v) + ')'
    if isinstance(v, list):
        return '[' + ' '.join(dump(e, depth + 1) for e in v) + ']'
    return '!'


def recursive():
    l = []
    l.append(('a', (T, 1)))
    l.append(l)
    l.append(['b', [T, l]])
    return l


def nested(kind, n):
    v = kind((1,))
    for _ in range(n):
        v = kind((v,))
    return v


def text_of_every_byte():
    return ''.join(chr(i) for i in range(128))


def cases():
    point = (T, 1.5)
    yield 'tuples', [('a.b', (T, 1.5)), ('a.c', (T + 60, 2))]
    yield 'lists', [['a.b', [T, 1.5]], ['a.c', [T + 60, 2]]]
    yield 'mixed', [['a.b', (T, 1.5)], ('a.c', [T + 60, 2])]
    yield 'tuple-of-tuples', (('a.b', (T, 1.5)), ('a.c', (T, 2.5)))
    yield 'one', [('a.b', (T, 1.5))]
    yield 'empty', []
    yield 'shared-point', [('m.%d' % i, point) for i in range(4)]
    yield 'shared-name', [('the.same.name', (T + i, i)) for i in range(4)]
    yield 'float-time', [('a', (T + 0.75, 1)), ('b', (float(T), 2))]
    yield 'texts', [('a', (str(T), '1.5')), ('b', (' %d ' % T, '\t2\n')), ('c', (T, '1e3')), ('d', (T, '1_0')), ('e', (str(T) + '.5', '-0'))]
    yield 'text-inf-nan', [('a', (T, 'inf')), ('b', (T, '-Infinity')), ('c', (T, 'nan')), ('d', (T, 'x')), ('e', ('x', 1)), ('f', (T, ''))]
    yield 'inf-nan', [('a', (T, float('inf'))), ('b', (T, float('-inf'))), ('c', (T, float('nan'))), ('d', (T, 1e-320)), ('e', (T, -0.0)), ('f', (T, 1.7976931348623157e308))]
    ints = [0, 1, -1, 127, 128, 255, 256, -128, -129, 65535, 65536, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**53 + 1, 2**53 + 3, 2**63 - 1, 2**63, -2**63, -2**63 - 1,
            2**64 - 1, 10**18 + 1, 10**30, -10**30, 2**64 + 2**11, 2**64 + 2**11 + 1, 2**200 - 1, 2**1023, -2**1023]
    yield 'ints', [('i%d' % n, (T, i)) for n, i in enumerate(ints)]
    yield 'huge', [('a', (T, 2**1024)), ('b', (T, 1))]
    yield 'minus-huge', [('a', (T, -2**1024)), ('b', (T, -2**1024 + 2**960)), ('c', (T, 2**1024 - 2**960)), ('d', (T, 2**3000))]
    if PY2:
        yield 'longs', [('i%d' % n, (long(T), long(i))) for n, i in enumerate(ints)]
    yield 'bools', [('a', (T, True)), ('b', (T, False)), ('c', (True, 1))]
    yield 'none', [('a', (T, None)), ('b', (None, 1)), (None, (T, 1)), None, ('z', (T, 1))]
    yield 'unicode', [(u'ä.ö', (T, 1)), (u'\u20ac', (T, 2)), (u'\U0001f600', (T, 3)), (u'a\\b\\u0041\nc\r\0\x1a', (T, 4)), (u'a\\\\u0041', (T, 5)), (u'', (T, 6)), (u'plain', (T, 7))]
    yield 'escapes', [(text_of_every_byte(), (T, 1)), ("it's", (T, 2)), ('"', (T, 3)), ('\'"\\', (T, 4)), ('\\x41\\101\\q', (T, 5)), (' a b ', (T, 6)), ('', (T, 7))]
    if PY2:
        yield 'utf8-str', [('a\xc3\xa4', (T, 1)), ('b', (T, 2))]
        yield 'bad-utf8-str', [('a\xff\xfe', (T, 1)), ('b', (T, 2))]
        yield 'every-byte', [(''.join(chr(i) for i in range(256)), (T, 1)), ('b', (T, 2))]
    else:
        yield 'bytes', [(b'a.b', (T, 1)), (b'a.c', (b'1700000000', b'2.5')), ('z', (T, 3))]
        yield 'half-runes', [(u'a\ud800', (T, 1)), (u'b\udc00c', (T, 2)), ('z', (T, 3))]
    yield 'long-texts', [('a' * 255, (T, 1)), ('b' * 256, (T, 2)), ('c' * 300, (T, 3))]
    yield 'bad-items', [('a',), ('a', 1, 2), 'ab', 5, None, (), [], ('a', (1,)), ('a', (1, 2, 3)), ('a', 'xy'), (5, (T, 2)), (('a',), (T, 2)), ('a', (None, 1)), ('a', ([], 1)), ('a', (T, ())), ('z', (T, 1))]
    yield 'times', [('a', (-1, 1)), ('b', (-1.5, 2)), ('c', (-0.5, 3)), ('d', ('-1', 4)), ('e', (1700000000.999, 5)), ('f', (0, 6)), ('g', (-60, 7))]
    yield 'time-nan', [('a', (T, 1)), ('b', (float('nan'), 2)), ('c', (T, 3))]
    yield 'time-inf', [('a', (T, 1)), ('b', (float('inf'), 2)), ('c', (T, 3))]
    yield 'time-far', [('a', (T, 1)), ('b', (1e300, 2)), ('c', (T * 1000, 3)), ('d', (-1e18, 4)), ('e', (T, 5))]
    yield 'tags', [('disk.used;host=web1;dc=eu', (T, 1)), ('a;b', (T, 2)), (';x=y', (T, 3)), ('~a', (T, 4)), ('a;name=b', (T, 5))]
    yield 'many', [('a', (i, i)) for i in range(1001)]
    yield 'many-lists', [['a', [i, i]] for i in range(11)]
    yield 'recursive', recursive()
    yield 'nested-tuples', nested(tuple, 100)
    yield 'nested-lists', nested(list, 100)
    yield 'top-none', None
    yield 'top-int', 5
    yield 'top-text', 'abc'
    yield 'dict', {'a': (T, 1)}
    yield 'dict-item', [('a', (T, 1)), {'a': 1}]
    yield 'set', [('a', (T, 1)), set([1])]
    yield 'frozenset', [('a', (T, 1)), frozenset([1])]
    yield 'object', [('a', (T, 1)), Object()]
    yield 'call', [('a', (T, 1)), Call()]
    yield 'datetime', [('a', (datetime.datetime(2023, 11, 14), 1))]
    yield 'decimal', [('a', (T, decimal.Decimal('1.5')))]
    yield 'complex', [('a', (T, 1j))]
    yield 'bytearray', [(bytearray(b'a'), (T, 1))]
    yield 'class', [('a', (T, int))]


def writers():
    v = 'python %d.%d' % sys.version_info[:2]
    for p in range(pickle.HIGHEST_PROTOCOL + 1):
        if PY2:
            yield '%s cPickle protocol %d' % (v, p), lambda o, p=p: cPickle.dumps(o, p)
            yield '%s pickle protocol %d' % (v, p), lambda o, p=p: pickle.dumps(o, p)
        else:
            yield '%s protocol %d' % (v, p), lambda o, p=p: pickle.dumps(o, p)
            if p == 4:
                import pickletools
                yield '%s optimized protocol %d' % (v, p), lambda o, p=p: pickletools.optimize(pickle.dumps(o, p))


last = None


def ditto(column):
    global last
    if len(column) > 10000:
        column = '#%08x' % (binascii.crc32(utf8(column)) & 0xffffffff)
    if column == last:
        return '"'
    last = column
    return column


def write():
    for name, value in cases():
        for writer, dumps in writers():
            try:
                b = dumps(value)
            except Exception as e:
                print(name, writer, e, file=sys.stderr)
                continue
            if name == 'many' and not ('3.13 protocol 4' in writer or 'cPickle protocol 2' in writer):
                continue
            print('\t'.join([name, writer, binascii.hexlify(b).decode(), ditto('!' if '!' in dump(value) else dump(value))]))


def carbon():
    import time
    from carbon import events, log, state
    from carbon.conf import settings
    import carbon.protocols as protocols
    log.listener = lambda *a: None
    time.time = lambda: T + 123.25
    got = []
    events.metricReceived = lambda metric, point: got.append((metric, point))
    settings['MIN_TIMESTAMP_RESOLUTION'] = 0
    r = protocols.MetricPickleReceiver()
    r.peerName = 'peer'
    r.unpickler = protocols.get_unpickler(insecure=False)
    r.resetTimeout = lambda: None
    for line in sys.stdin:
        line = line.rstrip('\n')
        del got[:]
        try:
            r.stringReceived(binascii.unhexlify(line.split('\t')[2]))
            end = ''
        except Exception as e:
            end = ' ' + type(e).__name__  # Twisted closes the connection
        text = ' '.join('%s=%s@%s' % (dump(m), dump(p[1])[1:], int(p[0])) for m, p in got)
        print(line + '\t' + ditto(text + end))


if __name__ == '__main__':
    {'write': write, 'carbon': carbon}[sys.argv[1]]()
