package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/ship"
)

// gate lets ships of a head pass while the partition is this process's. Those that come later wait: the
// partition may come back.
type gate struct {
	to *ship.Shipper

	mu   sync.Mutex
	shut chan struct{} // closed once ships may pass again; nil: they may
}

func newGate(to *ship.Shipper) *gate { return &gate{to: to} }

// Ship is [head.Shipper.Ship].
func (g *gate) Ship(ctx context.Context, s *head.Ship) error {
	for shut := g.until(); shut != nil; shut = g.until() {
		select {
		case <-shut:
		case <-ctx.Done():
			return fmt.Errorf("the partition is not this process's: %w: %w", model.ErrTransient, ctx.Err())
		}
	}
	return g.to.Ship(ctx, s)
}

func (g *gate) until() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

func (g *gate) isShut() bool { return g.until() != nil }

// close makes further ships wait. One that is on its way goes on, and fails if another process is faster.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

// open lets ships pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// Release ships all rows while reading goes on, and makes further ships wait. An error says that some were
// not shipped; the partition is let go all the same, because its next owner reads them from Kafka.
func (p *Partition) Release(ctx context.Context) error {
	if p.gate.isShut() {
		return nil
	}
	err := p.Ship(ctx)
	p.gate.close()
	return err
}

// Lose makes ships wait at once.
func (p *Partition) Lose() { p.gate.close() }

// Resume lets ships pass again. If another process has shipped the partition meanwhile, the next ship fails.
func (p *Partition) Resume() { p.gate.open() }

// Succeeded reports whether another process has shipped the partition since it was let go, so that queries
// find there what this one has. It asks the bucket.
func (p *Partition) Succeeded(ctx context.Context) (bool, error) {
	if err := p.o.Catalog.Poll(ctx); err != nil {
		return false, err
	}
	return p.o.Catalog.Progress(p.node, p.epoch.Number).To > p.shipper.Covered(), nil
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
