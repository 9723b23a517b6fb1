package head

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// shipID names the parts of a group that were marked together.
type shipID struct {
	signalGroup
	seqHi uint64
}

func shipOf(g signalGroup, in []*local.Part) shipID {
	return shipID{g, in[len(in)-1].Info.SeqHi}
}

// load is what a group gives to a ship.
type load struct {
	shipID
	in     []*local.Part
	blocks []Block
}

// load chooses parts of a group and makes blocks of them, unless an earlier try has made them. There are no
// parts if the group is through.
func (h *Head) load(ctx context.Context, g signalGroup, choose chooser) (l load, err error) {
	in, err := choose(ctx, g)
	if len(in) == 0 || err != nil {
		return l, err
	}
	l = load{shipID: shipOf(g, in), in: in}
	built := false
	if l.blocks, built = h.merging.built[l.shipID]; built {
		return l, nil
	}
	if err := h.roomToBuild(); err != nil {
		return l, err
	}
	if err := h.reserve(l.shipID, h.shipFactor()*partBytes(in)); err != nil {
		return l, err
	}
	if l.blocks, err = h.build(ctx, g.signal, in); err == nil {
		h.merging.built[l.shipID] = l.blocks
	}
	return l, err
}

// shipLot ships loads at once, and returns the groups that are through. If one of them is bad, each goes
// alone.
func (h *Head) shipLot(ctx context.Context, lot []load) (done []signalGroup, err error) {
	err = h.shipTogether(ctx, lot)
	if err != nil && len(lot) > 1 && !errors.Is(err, model.ErrTransient) && ctx.Err() == nil {
		var errs []error
		for i := range lot {
			through, err := h.shipLot(ctx, lot[i:i+1])
			done, errs = append(done, through...), append(errs, err)
		}
		return done, errors.Join(errs...)
	}
	for _, l := range lot {
		if err != nil {
			h.keepBuilt(l.shipID, l.blocks, err)
		} else {
			done = append(done, l.signalGroup)
		}
	}
	return done, err
}

// coversMore reports whether other parts than those of a ship have rows of the batches up to covered.
func (h *Head) coversMore(covered uint64, shipped []*local.Part) bool {
	return slices.ContainsFunc(h.snapshot(), func(p *local.Part) bool {
		return p.Info.Kind == local.Data && p.Info.SeqLo <= covered && !slices.Contains(shipped, p)
	})
}

// shipTogether takes the blocks of loads to the bucket, and drops the parts once the blocks are in the
// catalogue.
func (h *Head) shipTogether(ctx context.Context, lot []load) error {
	s := Ship{Node: h.o.Node, Epoch: h.epoch, Covered: h.merging.covered, Flushed: h.merging.flushed}
	var in []*local.Part
	var names []string
	for _, l := range lot {
		s.Blocks, in, names = append(s.Blocks, l.blocks...), append(in, l.in...), append(names, string(l.group))
	}
	s.Rest = h.coversMore(s.Covered, in)
	if len(s.Blocks) > 0 {
		// Deletions come first, so that no deleted row becomes visible. A crash may have come between the journal
		// and the catalogue.
		err := h.CommitDeletions(ctx)
		if err == nil {
			err = h.o.Shipper.Ship(ctx, &s)
		}
		if err != nil {
			h.metrics.shipErrors.Inc()
			return fmt.Errorf("ship %s: %w", strings.Join(names, ", "), err)
		}
		if !s.Rest {
			h.merging.recorded = s.Covered
		}
	}
	for _, b := range s.Blocks {
		h.metrics.shippedBytes.Add(float64(b.Size))
	}
	h.removeBlocks(s.Blocks)
	for _, l := range lot {
		delete(h.merging.built, l.shipID)
	}
	for _, l := range lot {
		h.rowsShipped(l.signal, l.group)
	}
	if err := h.commit(ctx, edit{remove: in, shipped: true}); err != nil {
		return err // the next try builds the blocks again, and the catalogue knows them
	}
	for _, l := range lot {
		h.endReservation(l.shipID)
	}
	return nil
}
