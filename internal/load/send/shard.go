package send

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/wire"
)

// shard sends every concurrency-th batch of each round.
type shard struct {
	load     *RemoteWrite
	acks     *statefile.Acks
	first    int
	body     *wire.Requests
	zip      wire.Compression
	post     *poster
	backoff  backoff
	metadata *metadataSender
}

func newShard(l *RemoteWrite, first int, acks *statefile.Acks, endpoint *url.URL) *shard {
	s := &shard{
		load: l, acks: acks, first: first, body: wire.NewRequests(l.Encoding()), zip: l.Compression,
		post:    newPoster(endpoint, l.UserAgent, l.Token, headers(l.Protocol, l.Compression, l.Emulate)),
		backoff: backoff{Emulation: l.Emulate, seed: l.Fleet.Seed + uint64(first)},
	}
	if l.Fleet.Metadata && l.Protocol == wire.V1 {
		s.metadata = &metadataSender{shard: s}
	}
	return s
}

// run sends until the load is complete or open ends. Requests in flight may then finish within ctx.
func (s *shard) run(ctx, open context.Context) {
	defer s.post.close()
	l := s.load
	for round := 0; l.Schedule.More(round); round++ {
		if s.metadata != nil && !s.metadata.run(ctx, open) {
			return
		}
		for batch := s.first; batch < s.acks.Batches; batch += l.Concurrency {
			lag, err := l.Schedule.Wait(open, round, int64(batch), int64(s.acks.Batches))
			if err != nil {
				return
			}
			l.Tally.SetLag(lag)
			s.send(ctx, open, round, batch)
		}
	}
}

// send sends one batch, with retries.
func (s *shard) send(ctx, open context.Context, round, batch int) {
	l, t := s.load, s.load.Tally
	tenant, _, _ := l.Fleet.Batch(batch, l.Batch)
	compressed, size, c := s.body.Fill(batch, round)
	t.count(&c)
	n := int64(c.Points())
	if n == 0 { // nothing is due; an empty batch counts as acknowledged
		s.acks.Ack(round, batch)
		l.State.Append(statefile.RecordAck, uint64(round), uint64(batch))
		return
	}
	switch s.deliver(ctx, open, tenant, &parcel{
		body: compressed, size: size, Contents: c,
		repack: func() ([]byte, int) { compressed, size, _ := s.body.Fill(batch, round); return compressed, size },
		failed: func() { s.failed(round, batch) },
	}) {
	case stored:
		s.acks.Ack(round, batch)
		l.State.Append(statefile.RecordAck, uint64(round), uint64(batch))
		t.Acked.Add(n)
	case refused:
		t.Dropped.Add(n)
	default:
		t.Lost.Add(n)
	}
}

// parcel is a body to deliver.
type parcel struct {
	body []byte
	size int // without compression
	wire.Contents
	// repack makes the body again after the shard's compression has changed.
	repack func() (body []byte, size int)
	// failed is called after each attempt that was not acknowledged.
	failed func()
}

// deliver sends a parcel until the server has decided about it. It returns again if the time is over.
func (s *shard) deliver(ctx, open context.Context, tenant int, p *parcel) fate {
	l, t := s.load, s.load.Tally
	s.backoff.begin()
	for attempt := 0; ; attempt++ {
		asked := time.Now()
		got, err := s.post.post(ctx, p.body, l.Fleet.TenantName(l.Tenant, tenant), attempt)
		t.Attempt(int64(p.size), int64(len(p.body)))
		if err != nil {
			t.Fault(plain(err))
		} else {
			t.Respond(got.code, time.Since(asked))
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
		if pace.Sleep(open, s.backoff.wait(got.retryAfter)) != nil {
			return again
		}
		t.Retries.Add(1)
	}
}

// judge decides what follows a response, and keeps the complaint if it is not a success.
func (s *shard) judge(got *response, p *parcel) fate {
	l, t := s.load, s.load.Tally
	fate := l.Emulate.fate(got.code, s.zip, l.RetryOn429)
	switch {
	case fate != stored:
		t.Complain(fmt.Sprintf("%d %s", got.code, got.text))
	case l.Protocol != wire.V2:
	case got.written.nothing(&p.Contents):
		t.misreported.Add(1)
		t.Complain(fmt.Sprintf("%d, but its headers say that none of %d samples, %d histograms and %d exemplars was written",
			got.code, p.Samples, p.Histograms, p.Exemplars))
		return refused
	case !got.written.all(&p.Contents):
		t.misreported.Add(1)
		t.Complain(fmt.Sprintf("%d, but its headers say that %d samples, %d histograms and %d exemplars were written of %d, %d and %d", got.code,
			got.written.samples, got.written.histograms, got.written.exemplars, p.Samples, p.Histograms, p.Exemplars))
	}
	return fate
}

// repack changes to snappy for the rest of the load.
func (s *shard) repack(p *parcel) {
	l := s.load
	s.zip = wire.Snappy
	s.body.UseSnappy()
	s.post.describe(headers(l.Protocol, wire.Snappy, l.Emulate))
	p.body, p.size = p.repack()
}

// failed notes that a batch may be stored although it was not acknowledged.
func (s *shard) failed(round, batch int) {
	if !s.acks.Tried(round, batch) {
		s.acks.Fail(round, batch)
		s.load.State.Append(statefile.RecordFail, uint64(round), uint64(batch))
	}
}
