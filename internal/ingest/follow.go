package ingest

import (
	"context"
	"time"
)

// Ships is the part that a process has in the ships of its partitions.
type Ships string

const (
	// ShipsAlways is for the process that ships the partition.
	ShipsAlways Ships = ""
	// ShipsNever is for one that holds the same rows for queries, and drops them once they are in the bucket.
	ShipsNever Ships = "off"
	// ShipsStandby is ShipsNever until no other process has shipped for three times ShipEvery, though there was
	// something to ship. If the other process comes back and ships, this one begins again as a follower.
	ShipsStandby Ships = "standby"
)

// standbyAfter is how many times ShipEvery a standby waits for the other process.
const standbyAfter = 3

// follow drops what another process has shipped, until ctx ends or this one ships.
func (p *Partition) follow(ctx context.Context) {
	tick := time.NewTicker(p.o.FollowEvery)
	defer tick.Stop()
	failing := false
	for p.gate.follows.Load() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := p.Follow(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			p.o.Logger.Warn("cannot follow the ships of a partition; trying again", "partition", p.o.Partition, "err", err)
		}
		failing = err != nil
	}
}

// Follow asks the bucket how far another process has shipped the partition, and drops what is there. A
// standby may find that nothing ships the partition any more, and begins.
func (p *Partition) Follow(ctx context.Context) error {
	if err := p.o.Catalog.Poll(ctx); err != nil {
		return err // with the bucket away no process ships
	}
	now, before := p.o.Catalog.Progress(p.node, p.epoch.Number), p.shipper.Last()
	p.shipper.Resume(now)
	if err := p.head.Trim(ctx, now.To); err != nil {
		return err
	}
	if now.Ship != before || p.Idle() {
		p.moved = time.Now()
	}
	if p.o.Ships == ShipsStandby && p.Caught() && time.Since(p.moved) > standbyAfter*p.o.ShipEvery && !p.gate.shut.Load() {
		p.o.Logger.Warn("no other process ships a partition; this one begins", "partition", p.o.Partition, "shipped", p.Shipped())
		p.gate.follows.Store(false)
		p.o.TookOver()
	}
	return nil
}

// rests reports whether the head ships nothing by itself. A standby ships only every ShipEvery, so that the
// other process has the time to open the partition and to ship first.
func (p *Partition) rests() bool { return p.o.Ships == ShipsStandby || p.gate.rests() }

// awaitClose waits at the end of a topic until another process has closed the partition: queries need the
// rows until then. It returns false if this one ships now, or if ctx ends.
func (p *Partition) awaitClose(ctx context.Context) bool {
	tick := time.NewTicker(min(p.o.FollowEvery, time.Second))
	defer tick.Stop()
	for !p.o.Catalog.Progress(p.node, p.epoch.Number).Closed {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if !p.gate.follows.Load() {
			return false
		}
	}
	return true
}
