"""Gives the same points to a real carbon-relay and to Shale, and compares what arrives at their destinations.

relay_daemons.py BIN SHALE: BIN is the folder of carbon-relay.py, SHALE the program. Exits with 1 on a difference.
"""
import collections, os, pickle, random, socket, struct, subprocess, sys, tempfile, threading, time

HOSTS = ['127.0.0.1', '127.0.0.2', '127.0.0.3']


class Sink:
    """A carbon that keeps what it gets."""

    def __init__(self, host, protocol):
        self.protocol, self.points, self.lock = protocol, collections.Counter(), threading.Lock()
        self.socket = socket.socket()
        self.socket.bind((host, 0))
        self.socket.listen(100)
        self.host, self.port = self.socket.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        f = conn.makefile('rb')
        while True:
            if self.protocol == 'line':
                line = f.readline()
                if not line:
                    break
                name, value, at = line.split()
                points = [(name.decode(), (float(at), float(value)))]
            else:
                head = f.read(4)
                if len(head) < 4:
                    break
                points = pickle.loads(f.read(struct.unpack('!L', head)[0]))
            with self.lock:
                self.points.update((n, int(t), float(v)) for n, (t, v) in points)
        f.close()
        conn.close()


def free():
    s = socket.socket()
    s.bind(('127.0.0.1', 0))
    return s.getsockname()[1], s


def run(program, port, sinks, lines):
    for _ in range(200):
        try:
            s = socket.create_connection(('127.0.0.1', port))
            break
        except OSError:
            time.sleep(0.2)
    s.sendall(lines)
    s.shutdown(socket.SHUT_WR)
    s.recv(1)
    last = -1
    while True:  # until nothing has come for 4 s
        n = sum(sum(k.points.values()) for k in sinks)
        if n == last and n > 0:
            break
        last = n
        time.sleep(4)
    program.terminate()
    program.wait()
    return [k.points for k in sinks]


def compare(method, protocol, more, lines, bin, shale):
    got = []
    for which in ['carbon', 'shale']:
        # The ring knows hosts and instances; ports may differ.
        sinks = [Sink(h, protocol) for h in HOSTS for _ in range(2)]
        named = ['%s:%d:%s' % (k.host, k.port, 'ab'[i % 2]) for i, k in enumerate(sinks)]
        d = tempfile.mkdtemp()
        os.makedirs(d + '/conf'), os.makedirs(d + '/storage/log')
        port, held = free()
        with open(d + '/conf/carbon.conf', 'w') as f:
            f.write('[relay]\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = %d\nPICKLE_RECEIVER_PORT = 0\nRELAY_METHOD = %s\nDESTINATIONS = %s\n'
                    'DESTINATION_PROTOCOL = %s\nMAX_QUEUE_SIZE = 1000000\nCARBON_METRIC_INTERVAL = 0\n%s' % (port, method, ', '.join(named), protocol, more))
        with open(d + '/conf/relay-rules.conf', 'w') as f:
            f.write('[web]\npattern = ^WEB\ndestinations = %s, %s\ncontinue = true\n[cpu]\npattern = cpu\\d$\ndestinations = %s\n[default]\ndefault = true\ndestinations = %s\n' % (
                named[0], named[3], named[4], named[1]))
        with open(d + '/conf/aggregation-rules.conf', 'w') as f:
            f.write('<a>.all (60) = sum <a>.*.cpu1\n')
        with open(d + '/conf/storage-schemas.conf', 'w') as f:
            f.write('[all]\npattern = .\nretentions = 60s:1d\n')
        held.close()
        if which == 'carbon':
            program = subprocess.Popen([sys.executable, bin + '/carbon-relay.py', '--debug', '--config=' + d + '/conf/carbon.conf', '--logdir=' + d, '--pidfile=' + d + '/pid', 'start'],
                                       env=dict(os.environ, GRAPHITE_ROOT=d, GRAPHITE_CONF_DIR=d + '/conf', GRAPHITE_STORAGE_DIR=d + '/storage'),
                                       stdout=open(d + '/out', 'w'), stderr=subprocess.STDOUT)
        else:
            program = subprocess.Popen([shale, 'serve', '--data-dir', d + '/data', '--http-listen', '127.0.0.1:0', '--graphite-listen', '127.0.0.1:%d' % port,
                                        '--graphite-pickle-listen', '', '--graphite.relay', d + '/conf/carbon.conf', '--memory', '256MiB'],
                                       stdout=open(d + '/out', 'w'), stderr=subprocess.STDOUT)
        got.append(run(program, port, sinks, lines))
    for i, (a, b) in enumerate(zip(*got)):
        if a != b:
            print('%s over %s: destination %d: %d points of carbon are missing, %d are too many, such as %s' % (
                method, protocol, i, sum((a - b).values()), sum((b - a).values()), (list(a - b) + list(b - a))[:2]))
            return False
    print('%s over %s: the same %d points at %d destinations' % (method, protocol, sum(sum(c.values()) for c in got[0]), len(got[0])))
    return True


if __name__ == '__main__':
    r = random.Random(1)
    name = lambda: '.'.join([r.choice(['web', 'db', 'Webmail']), 'h%d' % r.randrange(200), r.choice(['cpu1', 'cpu2', 'mem'])]) + r.choice(['', '', ';dc=eu'])
    text = ''.join('%s %s %d\n' % (name(), round(r.uniform(-1000, 1000), r.randrange(10)), 1700000000 + i) for i in range(20000)).encode()
    ok = True
    for method, more in [('rules', ''), ('consistent-hashing', 'REPLICATION_FACTOR = 2\n'), ('consistent-hashing', 'ROUTER_HASH_TYPE = fnv1a_ch\nDIVERSE_REPLICAS = False\nREPLICATION_FACTOR = 3\n'),
                         ('aggregated-consistent-hashing', ''), ('fast-hashing', '')]:
        for protocol in ['pickle', 'line']:
            ok = compare(method, protocol, more, text, sys.argv[1], sys.argv[2]) and ok
    sys.exit(0 if ok else 1)
