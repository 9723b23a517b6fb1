package ingester

import (
	"context"
	"errors"

	"github.com/shaledb/shale/internal/api/peer"
	"github.com/shaledb/shale/internal/app/deletions"
	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// Held returns the partitions that other processes may ask. Their pages are kept in a cache.
func Held(owner *ingest.Owner, pages *ram.Cache) (all []peer.Partition) {
	owner.Each(func(number int32, p *ingest.Partition, _ ingest.State, _ error) {
		if p != nil {
			all = append(all, &heldPartition{p, owner, pages, number, p.Caught()})
		}
	})
	return all
}

// The rooms fit.
var (
	_ peer.Tailed = (*heldPartition)(nil)
	_ peer.Hiding = (*heldPartition)(nil)
)

// heldPartition is a partition as other processes ask for it.
type heldPartition struct {
	p      *ingest.Partition
	owner  *ingest.Owner
	pages  *ram.Cache
	number int32
	ready  bool
}

// Journal is [peer.Partition.Journal].
func (h *heldPartition) Journal() wire.Journal {
	j := wire.Journal{Ready: h.ready}
	j.Node, j.Epoch = h.p.Journal()
	j.From, j.To = h.p.Held()
	open := false
	h.owner.Each(func(number int32, p *ingest.Partition, _ ingest.State, _ error) {
		open = open || number == h.number && p == h.p
	})
	if !open { // its rows may have gone before the asker has pinned them
		j.Ready = false
	}
	return j
}

// Source is [peer.Partition.Source].
func (h *heldPartition) Source(after uint64) read.Source {
	return h.p.Head().SourceAfter(after, &lifeCache{h.pages, h.p.Life() + "/"})
}

// Without is [peer.Hiding.Without].
func (h *heldPartition) Without(after uint64, hide []wire.Hidden) (read.Source, error) {
	fences, err := deletions.Fences(hide, deletions.Filter)
	if err != nil {
		return nil, err
	}
	return h.p.Head().SourceWithout(after, fences, &lifeCache{h.pages, h.p.Life() + "/"}), nil
}

// Watch is [peer.Tailed.Watch].
func (h *heldPartition) Watch(fn func(*model.Batch, func([]uint32) error), ended func()) (cancel func()) {
	return h.p.Watch(func(a *ingest.Applied) {
		fn(a.Batch, func(some []uint32) error { return a.Label(context.Background(), some) })
	}, ended)
}

// Await is [peer.Partition.Await].
func (h *heldPartition) Await(ctx context.Context, seq uint64) error {
	err := h.p.Head().AwaitApplied(ctx, seq)
	if err != nil && ctx.Err() != nil {
		return errors.Join(model.ErrTransient, err)
	}
	return err
}

// Source returns the rows and labels of a partition that are held. Pages are kept in a cache.
func Source(p *ingest.Partition, pages *ram.Cache) read.Source {
	return p.Head().Source(&lifeCache{pages, p.Life() + "/"})
}

// lifeCache keeps the pages of heads apart: each counts its files from 1.
type lifeCache struct {
	*ram.Cache
	life string
}

// Get is [part.Cache.Get].
func (c *lifeCache) Get(ctx context.Context, k cache.Key, load func(context.Context) ([]byte, error)) ([]byte, bool, error) {
	k.Object = c.life + k.Object
	return c.Cache.Get(ctx, k, load)
}

// Peek is [part.Cache.Peek].
func (c *lifeCache) Peek(k cache.Key) ([]byte, bool) {
	k.Object = c.life + k.Object
	return c.Cache.Peek(k)
}

// Has is [part.Cache.Has].
func (c *lifeCache) Has(k cache.Key) bool {
	k.Object = c.life + k.Object
	return c.Cache.Has(k)
}
