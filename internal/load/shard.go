package load

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// shard sends every concurrency-th batch of each round.
type shard struct {
	load     *RemoteWrite
	acks     *Acks
	first    int
	body     *body
	zip      Compression
	post     *poster
	backoff  backoff
	metadata *metadataSender
}

func newShard(l *RemoteWrite, first int, acks *Acks, endpoint *url.URL) *shard {
	s := &shard{
		load: l, acks: acks, first: first, body: newBody(l), zip: l.Compression,
		post:    newPoster(endpoint, l.UserAgent, l.Protocol.headers(l.Compression, l.Emulate)),
		backoff: backoff{Emulation: l.Emulate, seed: l.Fleet.Seed + uint64(first)},
	}
	if l.Fleet.Metadata && l.Protocol == V1 {
		s.metadata = &metadataSender{shard: s}
	}
	return s
}

// run sends until the load is complete or open ends. Requests that are under way then may finish within ctx.
func (s *shard) run(ctx, open context.Context) {
	defer s.post.close()
	l := s.load
	for round := 0; l.Schedule.more(round); round++ {
		if s.metadata != nil && !s.metadata.run(ctx, open) {
			return
		}
		for batch := s.first; batch < s.acks.batches; batch += l.Concurrency {
			lag, err := l.Schedule.wait(open, round, int64(batch), int64(s.acks.batches))
			if err != nil {
				return
			}
			l.Tally.late(lag)
			s.send(ctx, open, round, batch)
		}
	}
}

// send sends one batch, as often as it takes.
func (s *shard) send(ctx, open context.Context, round, batch int) {
	l, t := s.load, s.load.Tally
	tenant, _, _ := l.Fleet.batch(batch, l.Batch)
	compressed, size, c := s.body.fill(batch, round)
	t.count(&c)
	n := int64(c.points())
	if n == 0 { // nothing is due; it counts as acknowledged
		s.acks.Ack(round, batch)
		l.State.append(recordAck, uint64(round), uint64(batch))
		return
	}
	switch s.deliver(ctx, open, tenant, &parcel{
		body: compressed, size: size, contents: c,
		repack: func() ([]byte, int) { compressed, size, _ := s.body.fill(batch, round); return compressed, size },
		failed: func() { s.failed(round, batch) },
	}) {
	case stored:
		s.acks.Ack(round, batch)
		l.State.append(recordAck, uint64(round), uint64(batch))
		t.acked.Add(n)
	case refused:
		t.dropped.Add(n)
	default:
		t.lost.Add(n)
	}
}

// parcel is a body on its way.
type parcel struct {
	body []byte
	size int // without compression
	contents
	// repack makes the body again after the shard's compression has changed.
	repack func() (body []byte, size int)
	// failed is called after each attempt that was not acknowledged.
	failed func()
}

// deliver sends a parcel until the server has decided about it, or the time is over, which gives again.
func (s *shard) deliver(ctx, open context.Context, tenant int, p *parcel) fate {
	l, t := s.load, s.load.Tally
	s.backoff.begin()
	for attempt := 0; ; attempt++ {
		asked := time.Now()
		got, err := s.post.post(ctx, p.body, l.Fleet.tenantName(l.Tenant, tenant), attempt)
		t.requests.Add(1)
		t.rawBytes.Add(int64(p.size))
		t.wireBytes.Add(int64(len(p.body)))
		if err != nil {
			t.faults.Add(1)
			t.complain(plain(err))
		} else {
			t.latency.Observe(time.Since(asked))
			t.codes[min(max(got.code, 0), len(t.codes)-1)].Add(1)
			switch fate := s.judge(&got, p); fate {
			case stored:
				return stored
			case refused:
				p.failed()
				return refused
			case repack:
				s.repack(p)
				attempt = -1
				continue
			}
		}
		p.failed()
		if sleep(open, s.backoff.wait(got.retryAfter)) != nil {
			return again
		}
		t.retries.Add(1)
	}
}

// judge decides about an answer, and tells of it if it is not as it should be.
func (s *shard) judge(got *answer, p *parcel) fate {
	l, t := s.load, s.load.Tally
	fate := l.Emulate.fate(got.code, s.zip, l.RetryOn429)
	switch {
	case fate != stored:
		t.complain(fmt.Sprintf("%d %s", got.code, got.text))
	case l.Protocol != V2:
	case got.written.nothing(&p.contents):
		t.misreported.Add(1)
		t.complain(fmt.Sprintf("%d, but by its headers nothing of %d samples, %d histograms and %d exemplars was written",
			got.code, p.samples, p.histograms, p.exemplars))
		return refused
	case !got.written.all(&p.contents):
		t.misreported.Add(1)
		t.complain(fmt.Sprintf("%d, but by its headers %d samples, %d histograms and %d exemplars were written of %d, %d and %d", got.code,
			got.written.samples, got.written.histograms, got.written.exemplars, p.samples, p.histograms, p.exemplars))
	}
	return fate
}

// repack goes over to snappy for good.
func (s *shard) repack(p *parcel) {
	l := s.load
	s.zip = Snappy
	s.body.zip = newPacker(Snappy)
	s.post.describe(l.Protocol.headers(Snappy, l.Emulate))
	p.body, p.size = p.repack()
}

// failed notes that a batch may lie in the store although nobody said so.
func (s *shard) failed(round, batch int) {
	if !s.acks.Tried(round, batch) {
		s.acks.Fail(round, batch)
		s.load.State.append(recordFail, uint64(round), uint64(batch))
	}
}
