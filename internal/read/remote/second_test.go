package remote_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/api/peer"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// nothingShipped is a log of journals of which the bucket has nothing.
type nothingShipped []*partition

func (l nothingShipped) Journals(context.Context, bool) (all []remote.Progress, err error) {
	for _, p := range l {
		all = append(all, remote.Progress{Node: p.node, Epoch: 3, End: p.head.Applied()})
	}
	return all, nil
}

// twice adds to a setup a further server, in the zone "there", that holds all partitions. The other servers
// are in the zone "here". It returns options of a query process here, whose connections to servers here pass
// through a cutter.
func twice(t *testing.T, s *setup, cut *cutter) (o remote.Options, there string) {
	t.Helper()
	serve := func(zone string, mine []*partition) string {
		server := httptest.NewServer(peer.New(peer.Options{Zone: zone, Partitions: func() (all []peer.Partition) {
			for _, p := range mine {
				all = append(all, p)
			}
			return all
		}}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	here := []string{serve("here", s.parts[:2]), serve("here", s.parts[2:])}
	there = serve("there", s.parts)
	o = remote.Options{Peers: append(slices.Clone(here), there), Zone: "here", Log: nothingShipped(s.parts), Stall: time.Second, Refresh: time.Nanosecond}
	o.Client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if !slices.Contains(here, address) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		if cut.left.Load() <= 0 {
			return nil, errors.New("refused")
		}
		return cut.dial(ctx, network, address)
	}}}
	return o, there
}

// TestSecondHolder: the holders of one zone are lost after any number of bytes. A query is answered by the
// others, or it says that it was lost in the middle; then it is answered when it is repeated.
func TestSecondHolder(t *testing.T) {
	s := someRows(t, 24)
	for _, signal := range []model.Signal{model.Metrics, model.Logs} {
		req := &model.Request{Tenant: "a", Signal: signal, Range: model.Always()}
		want, err := dump(read.New(read.Options{Sources: s.near()}), req)
		if err != nil {
			t.Fatal(err)
		}
		whole, lost := 0, 0
		for n := int64(0); whole < 3; n = n*2 + 7 {
			for _, silent := range []bool{false, true} {
				if silent && n != 889 && n != 28665 { // each waits for seconds
					continue
				}
				cut := new(cutter)
				o, _ := twice(t, s, cut)
				cut.left.Store(n)
				cut.silent.Store(silent)
				far := remote.New(o)
				got, err := dump(read.New(read.Options{Sources: []read.Source{far}}), req)
				if remote.IsLost(err) && errors.Is(err, model.ErrTransient) {
					lost++
					got, err = dump(read.New(read.Options{Sources: []read.Source{far}}), req)
				}
				far.Close()
				switch {
				case err != nil:
					t.Fatalf("%s cut after %d bytes, silent %t: %v", signal, n, silent, err)
				case got != want:
					t.Fatalf("%s cut after %d bytes, silent %t: %s", signal, n, silent, firstDifference(got, want))
				case cut.left.Load() > 0:
					whole++
				}
			}
		}
		if lost < 5 {
			t.Errorf("%s: only %d queries were lost in the middle", signal, lost)
		}
	}
}

// stuck is a partition that never applies what it is asked for.
type stuck struct {
	*partition
	asked atomic.Int32
}

func (l *stuck) Journal() wire.Journal {
	j := l.partition.Journal()
	j.To = 0
	return j
}

func (l *stuck) Await(context.Context, uint64) error {
	l.asked.Add(1)
	return context.DeadlineExceeded
}

// TestLaggingHolder: a holder that has not applied what a query needs is waited for, and then the other one
// is asked, also by later queries.
func TestLaggingHolder(t *testing.T) {
	s := newSetup(t)
	t.Cleanup(s.close)
	cut := new(cutter)
	cut.left.Store(1 << 40)
	o, _ := twice(t, s, cut)
	late := &stuck{partition: s.parts[0]}
	server := httptest.NewServer(peer.New(peer.Options{Zone: "here", Partitions: func() []peer.Partition { return []peer.Partition{late, s.parts[1]} }}))
	t.Cleanup(server.Close)
	o.Peers[0] = server.Listener.Addr().String()
	far := remote.New(o)
	t.Cleanup(far.Close)
	s.parts[0].apply(&model.Batch{Tenant: "a"})
	for range 3 {
		if _, err := dump(read.New(read.Options{Sources: []read.Source{far}}), &model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always()}); err != nil {
			t.Fatal(err)
		}
	}
	if n := late.asked.Load(); n != 1 {
		t.Errorf("the holder that lags was asked %d times", n)
	}
}
