package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/roots"
	"github.com/shaledb/shale/internal/write/graphite/route"
	"github.com/shaledb/shale/internal/write/graphite/segment"
)

// Options build a Relay.
type Options struct {
	FS  vfs.FS
	Dir string // of the queues; it is created
	// QueueBytes bounds the disk of each queue.
	QueueBytes int64
	// Cert and Key are PEM files with the certificate that destinations get over TLS; empty: none.
	Cert, Key  string
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Relay owns the queues and their senders. It is safe for concurrent use.
type Relay struct {
	o       Options
	metrics *metrics
	queues  atomic.Pointer[[]*Queue] // those in use
	wake    chan struct{}            // capacity 1: much is pending
	lotTime time.Duration            // shorter in tests
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu     sync.Mutex // of Use and Close
	closed bool
}

// syncEvery is how often pending points are written.
const syncEvery = 100 * time.Millisecond

// Open returns a Relay without destinations.
func Open(o Options) (*Relay, error) {
	if err := segment.MakeDir(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("the queues of the relay: %w", err)
	}
	r := &Relay{o: o, metrics: newMetrics(o.Registerer), wake: make(chan struct{}, 1), lotTime: lotTime}
	r.queues.Store(&[]*Queue{})
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.work.Go(func() { r.syncOften(ctx) })
	return r, nil
}

// Use has points go to the destinations of a configuration, and returns their queues in the same order. The
// queues of destinations that are no longer there take points, too, until leave is called, which must be
// before the next Use. What waits in them then stays on disk, until they are there again.
func (r *Relay) Use(c *route.Conf) (queues []*Queue, leave func(), err error) {
	how, err := r.delivery(c)
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, fmt.Errorf("%w: the relay", model.ErrClosed)
	}
	old := *r.queues.Load()
	var now, begun []*Queue
	for _, d := range c.Destinations {
		if i := slices.IndexFunc(old, func(q *Queue) bool { return q.to == d }); i >= 0 {
			now = append(now, old[i])
			continue
		}
		q, err := r.open(d)
		if err != nil {
			return nil, nil, fmt.Errorf("the queue of %s: %w", d, err)
		}
		now, begun = append(now, q), append(begun, q)
	}
	for _, q := range now {
		q.how.Store(how)
	}
	for _, q := range begun {
		var ctx context.Context
		ctx, q.stop = context.WithCancel(context.Background())
		q.work.Go(func() { q.run(ctx) })
	}
	former := slices.DeleteFunc(slices.Clone(old), func(q *Queue) bool { return slices.Contains(now, q) })
	all := slices.Concat(now, former)
	r.queues.Store(&all)
	return now, func() { r.leave(former, now) }, nil
}

// leave closes the queues of former destinations. Sync covers them until what they have is durable.
func (r *Relay) leave(former, now []*Queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	var work sync.WaitGroup
	for _, q := range former {
		work.Go(func() {
			if err := q.close(); err != nil {
				r.o.Logger.Error("points for a former destination are lost", "destination", q.to.String(), "err", err)
			}
		})
	}
	work.Wait()
	r.queues.Store(&now)
	for _, q := range former {
		if q.readyPoints > 0 {
			r.o.Logger.Warn("points wait for a carbon that is no longer a destination: they are sent when it is one again; delete the folder to drop them",
				"destination", q.to.String(), "points", q.readyPoints, "folder", q.folder.Dir)
		}
		r.metrics.queuedPoints.DeleteLabelValues(q.to.String())
		r.metrics.queuedBytes.DeleteLabelValues(q.to.String())
	}
}

func (r *Relay) open(d route.Destination) (*Queue, error) {
	q := &Queue{
		to: d, most: r.o.QueueBytes, count: r.metrics.of(d.String()), log: r.o.Logger, wake: r.wake, ripe: r.lotTime, changed: make(chan struct{}, 1),
		folder: segment.Folder{FS: r.o.FS, Dir: r.o.FS.PathJoin(r.o.Dir, folderName(d)), Format: format},
	}
	return q, q.open()
}

// delivery returns how the destinations of a configuration get their points.
func (r *Relay) delivery(c *route.Conf) (*delivery, error) {
	d := &delivery{protocol: c.Protocol}
	if !c.TLS {
		return d, nil
	}
	d.secure = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		var err error
		if d.secure.RootCAs, err = roots.File(c.CA); err != nil {
			return nil, fmt.Errorf("%w: DESTINATION_SSL_CA: %w", model.ErrInvalid, err)
		}
	}
	if r.o.Cert == "" {
		return d, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(r.o.Cert, r.o.Key)
		return &pair, err
	}
	if _, err := load(); err != nil {
		return nil, fmt.Errorf("%w: graphite.relay-tls-cert-file and graphite.relay-tls-key-file: %w", model.ErrInvalid, err)
	}
	// The files are read for each connection, so that a renewed certificate is used.
	d.secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return d, nil
}

func (r *Relay) syncOften(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
		}
		_ = r.Sync() // queues log their errors
	}
}

// Sync makes durable what the queues have taken.
func (r *Relay) Sync() error {
	var waiting []*Queue
	for _, q := range *r.queues.Load() {
		q.mu.Lock()
		if q.pendingPoints+q.writing > 0 {
			waiting = append(waiting, q)
		}
		q.mu.Unlock()
	}
	errs := make([]error, len(waiting))
	var work sync.WaitGroup
	for i := 1; i < len(waiting); i++ {
		work.Go(func() { errs[i] = waiting[i].Sync() })
	}
	if len(waiting) > 0 {
		errs[0] = waiting[0].Sync()
	}
	work.Wait()
	return errors.Join(errs...)
}

// Close ends the senders, which have a moment for the lots that they are sending, and makes durable what
// waits. REQUIRES: no points are added any more.
func (r *Relay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.stop()
	r.work.Wait()
	all := *r.queues.Load()
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i, q := range all {
		work.Go(func() { errs[i] = q.close() })
	}
	work.Wait()
	return errors.Join(errs...)
}
