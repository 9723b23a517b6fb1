package ingest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/ship"
)

// gate lets ships of a head pass while the partition is this process's, and its ships are wanted. Others are
// refused: one that waited here would keep the head from merging, for as long as the gate stays shut.
type gate struct {
	to   *ship.Shipper
	shut atomic.Bool
	// follows is set while another process ships the partition.
	follows atomic.Bool
	// applied is what the head had when the gate was shut.
	applied atomic.Uint64
}

// Ship is [head.Shipper.Ship].
func (g *gate) Ship(ctx context.Context, s *head.Ship) error {
	if g.rests() {
		return fmt.Errorf("%w: the partition is not shipped by this process", model.ErrTransient)
	}
	return g.to.Ship(ctx, s)
}

// rests reports whether ships are refused.
func (g *gate) rests() bool { return g.shut.Load() || g.follows.Load() }

// Release ships all rows while reading goes on, and refuses further ships. An error says that some were not
// shipped within the time of ctx; the partition is let go all the same, because its next owner reads them
// from Kafka.
func (p *Partition) Release(ctx context.Context) error {
	if p.gate.rests() {
		p.Lose()
		return nil
	}
	// Another ship may be on its way, and hold locks until the bucket answers.
	shipped := make(chan error, 1)
	go func() { shipped <- p.Ship(ctx) }()
	var err error
	select {
	case err = <-shipped:
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", model.ErrTransient, ctx.Err())
	}
	p.Lose()
	return err
}

// Lose refuses further ships at once. One that is on its way goes on, and fails if another process is faster.
func (p *Partition) Lose() {
	if !p.gate.shut.Load() {
		p.gate.applied.Store(p.head.Applied())
		p.gate.shut.Store(true)
	}
}

// Resume lets ships pass again. If another process has shipped the partition meanwhile, the next ship fails.
func (p *Partition) Resume() { p.gate.shut.Store(false) }

// Succeeded reports whether another process has shipped the partition since it was let go, with all that this
// one had read then, so that queries find there what this one has. It asks the bucket.
func (p *Partition) Succeeded(ctx context.Context) (bool, error) {
	if err := p.o.Catalog.Poll(ctx); err != nil {
		return false, err
	}
	return p.succeeded(), nil
}

// succeeded is Succeeded as far as this process knows. A later ship may be its own, whose answer was lost.
// The next owner may ship while it still reads what this one has. What follows ships of others is needed
// until they have come as far.
func (p *Partition) succeeded() bool {
	now := p.o.Catalog.Progress(p.node, p.epoch.Number)
	if p.gate.follows.Load() {
		return p.gate.shut.Load() && now.To >= p.gate.applied.Load()
	}
	return p.gate.shut.Load() && now.Ship > p.shipper.Last() && now.Life != p.o.Life && now.To >= p.gate.applied.Load()
}

// Idle reports whether the bucket has all that was read.
func (p *Partition) Idle() bool { return p.shipper.Covered() >= p.head.Applied() }

// firstShipEvery is how often a partition looks whether it has reached the end.
const firstShipEvery = 100 * time.Millisecond

// firstShip returns a channel that says when to look whether the first ship is due; nil: it comes with the
// others.
func (p *Partition) firstShip() <-chan time.Time {
	if !p.o.ShipFirst {
		return nil
	}
	return time.Tick(firstShipEvery)
}
