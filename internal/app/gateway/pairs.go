package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/replicas"
)

// pairs elect the replicas of HA pairs by the state topic of the epoch that takes writes. A nil pairs elects
// none.
type pairs struct {
	*replicas.Shared

	mu    sync.Mutex
	epoch uint64
}

func (g *Gateway) openPairs(ctx context.Context) (*pairs, error) {
	if g.o.Pairs == nil {
		return nil, nil
	}
	name := kafka.StateTopic(g.o.Epoch.Topic)
	topic, err := kafka.Describe(ctx, g.o.Connection, name)
	if errors.Is(err, kafka.ErrNoTopic) {
		return nil, fmt.Errorf("ha.deduplicate: gateways elect replicas by the topic %s; make it with shale kafka create --state: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ha.deduplicate: %w", err)
	}
	for _, f := range kafka.CheckState(topic) {
		if f.Refused {
			return nil, fmt.Errorf("%w: ha.deduplicate: gateways elect replicas by the topic %s: %s is %s, and %s", model.ErrInvalid, name, f.Setting, f.Value, f.Why)
		}
		g.o.Logger.Warn("ha.deduplicate: the state topic is not as it should be", "setting", f.Setting, "value", f.Value, "why", f.Why)
	}
	put := func(key string, value []byte) { g.now.Load().state.Put(key, value) }
	s, err := replicas.NewShared(replicas.SharedOptions{
		Options: replicas.Options{Settings: *g.o.Pairs, SpareBytes: g.o.SpareBytes, Registerer: g.o.Registerer, Logger: g.o.Logger},
		By:      rand.Text(),
		Put:     func(r *replicas.Record) { put((*state.Leader)(r).Encode()) },
		Forget:  func(tenant, cluster string) { put((&state.NoLeader{Tenant: tenant, Cluster: cluster}).Encode()) },
	})
	return &pairs{Shared: s, epoch: g.o.Epoch.Number}, err
}

// follow goes on with the state topic of a later epoch. Nothing is stored by what the one before says any
// more: its topic takes no batches.
func (p *pairs) follow(epoch uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch > p.epoch {
		p.epoch = epoch
		p.Restart()
	}
}

// again goes on with the state topic of an epoch that was made again.
func (p *pairs) again(epoch uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch == p.epoch {
		p.Restart()
	}
}

// told is told of a record of an epoch.
func (p *pairs) told(epoch uint64, record any, offset int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch != p.epoch {
		return
	}
	switch r := record.(type) {
	case *state.Leader:
		p.Take((*replicas.Record)(r), offset)
	case *state.NoLeader:
		p.TakeEnd(r.Tenant, r.Cluster, offset)
	}
}

func (p *pairs) close() {
	if p != nil {
		p.Close()
	}
}

// Pairs returns what elects replicas of HA pairs, or nil.
func (g *Gateway) Pairs() *replicas.Shared {
	if g.pairs == nil {
		return nil
	}
	return g.pairs.Shared
}

// RunPairs tells other gateways of leaders that write here until Close. takeOver stores what new leaders sent
// before their election.
func (g *Gateway) RunPairs(takeOver func(context.Context, *replicas.Cluster)) {
	g.done.Go(func() { g.pairs.Run(g.running, takeOver) })
}
