package month

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// The defaults of the head: when rows become blocks, see head.Windows and head.Options.
const (
	window      = 2 * time.Hour
	grace       = 10 * time.Minute
	lateAge     = time.Hour
	windowBytes = 1 << 30
	lateBytes   = 64 << 20
)

// node and epoch name the journal.
const (
	node  = "server"
	epoch = 1
)

// batchesPerSecond is the rate of sequence numbers.
const batchesPerSecond = 10

// head says what is shipped when.
type head struct {
	fleet *Fleet
	rates map[model.Signal][]share
	// windows holds the rows that wait: for each signal, the windows by their ends.
	windows map[model.Signal][]pending
	late    map[model.Signal]int64 // since when late rows wait
	began   int64
	covered uint64
}

// pending is a window of which everything before from is shipped.
type pending struct{ from, end int64 }

func newHead(f *Fleet, now int64) *head {
	return &head{fleet: f, rates: f.rates(), windows: map[model.Signal][]pending{}, late: map[model.Signal]int64{}, began: now}
}

// due returns the blocks that are to be shipped now, with their stubs.
func (h *head) due(now int64) (blocks []catalog.Block, stubs []*stub) {
	for _, s := range []model.Signal{model.Metrics, model.Logs} {
		add := func(from, to int64, b *stub) {
			blocks, stubs = append(blocks, h.entry(s, from, to, now, b)), append(stubs, b)
		}
		if all := h.windows[s]; len(all) == 0 || all[len(all)-1].end <= now {
			start := now - now%int64(window)
			h.windows[s] = append(all, pending{start, start + int64(window)})
		}
		h.windows[s] = slices.DeleteFunc(h.windows[s], func(p pending) bool { return p.from >= p.end })
		for i := range h.windows[s] {
			p := &h.windows[s][i]
			to := min(now, p.end)
			b := h.rows(s, time.Duration(to-p.from), 1)
			if now > p.end+int64(grace) || b.bytes() >= windowBytes {
				add(p.from, to-1, b)
				p.from = to
			}
		}
		if h.fleet.Late == 0 {
			continue
		}
		if h.late[s] == 0 {
			h.late[s] = now
		}
		b := h.rows(s, time.Duration(now-h.late[s]), h.fleet.Late)
		if now-h.late[s] >= int64(lateAge) || b.bytes() >= lateBytes {
			oldest := max(h.late[s]-int64(h.fleet.Lateness), h.began)
			if newest := now - int64(window+grace); newest > oldest {
				add(oldest, newest, b)
			}
			h.late[s] = now
		}
	}
	return blocks, stubs
}

// rows returns what arrives in a time, or a part of it.
func (h *head) rows(s model.Signal, in time.Duration, part float64) *stub {
	b := &stub{signal: s}
	for _, r := range h.rates[s] {
		rows := r.rows * in.Seconds() * part
		b.shares = append(b.shares, share{r.tenant, min(rows, h.fleet.union(r.series*min(1, 10*part), in)), rows})
	}
	return b
}

// entry describes a shipped block.
func (h *head) entry(s model.Signal, from, to, now int64, b *stub) catalog.Block {
	r := model.TimeRange{Min: from, Max: to}
	lo, hi := h.seq(from), h.seq(now)
	entry := describe(b, r)
	entry.ID = catalog.BlockID(node, epoch, s, catalog.DefaultGroup, r, lo, hi, 0)
	entry.Signal, entry.Node, entry.Epoch, entry.SeqLo, entry.SeqHi, entry.Created = s, node, epoch, lo, hi, now
	return entry
}

// seq returns the sequence number of the batch that arrives at a time.
func (h *head) seq(at int64) uint64 {
	return uint64(max(0, at-h.began)/int64(time.Second))*batchesPerSecond + 1
}

// describe says what a block of all these shares holds.
func describe(b *stub, r model.TimeRange) catalog.Block {
	entry := catalog.Block{Range: r, KeyMax: greatestKey, LastKey: greatestKey, Bytes: b.bytes()}
	for i := range b.shares {
		h := &b.shares[i]
		entry.Tenants = append(entry.Tenants, tenantName(h.tenant))
		entry.Series += uint64(h.series + 1)
		if b.signal == model.Logs {
			entry.Lines, entry.LineBytes = entry.Lines+uint64(h.rows), entry.LineBytes+uint64(h.rows*lineSize)
		} else {
			entry.Samples += uint64(h.rows)
		}
	}
	return entry
}

// ship ships what is due: as many blocks at once as the head builds before it ships.
func (h *head) ship(ctx context.Context, c *catalog.Catalog, s *store, now int64) (ships int, err error) {
	blocks, stubs := h.due(now)
	for len(blocks) > 0 {
		n, bytes := 1, blocks[0].Bytes
		for ; n < len(blocks) && bytes < windowBytes; n++ {
			bytes += blocks[n].Bytes
		}
		bodies := map[string]*stub{}
		for i := range n {
			bodies[blocks[i].ID] = stubs[i]
		}
		next := catalog.Ship{Blocks: blocks[:n], Covered: []catalog.Coverage{{
			Node: node, Epoch: epoch, From: h.covered + 1, To: h.seq(now), Appended: now,
		}}}
		reached, err := c.Ship(ctx, next, func(ctx context.Context, id string) error {
			return s.Put(ctx, catalog.ObjectName(id), bodies[id], bodies[id].bytes())
		})
		if err != nil {
			return ships, errors.Join(err, ctx.Err())
		}
		h.covered = reached[0].To
		blocks, stubs = blocks[n:], stubs[n:]
		ships++
	}
	return ships, nil
}
