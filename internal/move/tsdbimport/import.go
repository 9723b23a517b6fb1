package tsdbimport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/move/remote"
)

// Import sends blocks to a server. It runs once.
type Import struct {
	Source Source
	Blocks []Block // of Blocks
	// Server is where samples go. A block of one of Mimir's tenants goes to the tenant of that name, unless
	// the server has a tenant.
	Server *client.Server
	State  *State
	// DropLabels are names of external labels that are not added.
	DropLabels  []string
	Concurrency int
	// Patience bounds how long the server may acknowledge nothing.
	Patience time.Duration
	// Verify reads every block back after it was sent.
	Verify bool

	done       atomic.Int64
	earlier    atomic.Int64 // of done: in earlier runs
	floats     atomic.Int64
	histograms atomic.Int64
	sender     *remote.Sender
}

// Report says what an import did.
type Report struct {
	// Imported blocks are acknowledged as a whole; of these, Before were so before this run.
	Imported int     `json:"blocks_imported"`
	Before   int     `json:"blocks_imported_before"`
	LeftOut  []Block `json:"blocks_left_out,omitempty"`
	// Floats and Histograms were acknowledged in this run.
	Floats     int64   `json:"floats"`
	Histograms int64   `json:"histograms"`
	Requests   int64   `json:"requests"`
	Retries    int64   `json:"retries"`
	Bytes      int64   `json:"bytes_sent"`
	Seconds    float64 `json:"seconds"`
	// Rate is samples a second while blocks were sent, without verification.
	Rate         float64       `json:"samples_per_second"`
	Verification *Verification `json:"verification,omitempty"`
}

// dayLength is how much of a block is sent at one time, in milliseconds: the store merges by days.
const dayLength = 24 * 60 * 60 * 1000

// Total returns the number of samples that the import reads, for a display of progress.
func (i *Import) Total() (n int64) {
	for k := range i.Blocks {
		if b := &i.Blocks[k]; i.wanted(b) {
			n += int64(b.Samples)
		}
	}
	if i.Verify {
		n *= 2
	}
	return n
}

// Done returns how many samples are sent or verified, and how many of them were so before this run.
func (i *Import) Done() (done, earlier int64) { return i.done.Load(), i.earlier.Load() }

// skip notes what an earlier run has done.
func (i *Import) skip(samples int64) {
	i.earlier.Add(samples)
	i.done.Add(samples)
}

// wanted reports whether a block is to be imported.
func (i *Import) wanted(b *Block) bool {
	return b.LeftOut == "" && b.MinTime < i.State.To && b.MaxTime > i.State.From
}

// Run sends all blocks, and verifies them if asked. The report is there even with an error, and the state
// file says where the next run goes on.
func (i *Import) Run(ctx context.Context) (r *Report, err error) {
	begun := time.Now()
	i.sender = remote.NewSender(i.Server, i.Patience)
	r = &Report{}
	if i.Verify {
		r.Verification = &Verification{}
	}
	var sending time.Duration
	for k := range i.Blocks {
		b := &i.Blocks[k]
		if !i.wanted(b) {
			if b.LeftOut != "" {
				r.LeftOut = append(r.LeftOut, *b)
			}
			continue
		}
		took, blockErr := i.block(ctx, b, r)
		sending += took
		if err = blockErr; err != nil {
			err = fmt.Errorf("block %s: %w", b.ID, err)
			break
		}
	}
	err = errors.Join(err, i.State.Save())
	r.Floats, r.Histograms, r.Seconds = i.floats.Load(), i.histograms.Load(), time.Since(begun).Seconds()
	r.Requests, r.Retries, r.Bytes = i.sender.Requests.Load(), i.sender.Retries.Load(), i.sender.Bytes.Load()
	if sending > 0 {
		r.Rate = float64(r.Floats+r.Histograms) / sending.Seconds()
	}
	return r, err
}

// block imports one block, and returns how long sending took.
func (i *Import) block(ctx context.Context, b *Block, r *Report) (sending time.Duration, err error) {
	p := i.State.progress(b)
	i.skip(p.Samples)
	if p.Sent {
		r.Imported++
		r.Before++
		if !i.Verify {
			return 0, nil
		}
		if p.Verified {
			i.skip(p.Samples)
			return 0, nil
		}
	}
	local := *b
	for _, name := range i.DropLabels {
		delete(local.External, name)
	}
	dir, done, err := i.Source.Fetch(ctx, b)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	block, err := openBlock(&local, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, block.close()) }()
	server := i.Server
	if b.Tenant != "" && server.Tenant == "" {
		server = server.As(b.Tenant)
	}
	if !p.Sent {
		begun := time.Now()
		i.sender.Server = server
		err = i.send(ctx, b, block, p)
		if sending = time.Since(begun); err != nil {
			return sending, err
		}
		r.Imported++
	}
	if !i.Verify {
		return sending, nil
	}
	patient := server.As(server.Tenant)
	patient.Retry = &client.Retry{Patience: i.Patience}
	v := verifier{server: patient, result: r.Verification, done: &i.done, concurrency: i.Concurrency, note: i.replacedBy(b)}
	same, err := v.run(ctx, block, max(b.MinTime, i.State.From), min(b.MaxTime, i.State.To))
	if err == nil && same {
		err = i.State.update(b, func(p *Progress) { p.Verified = true })
	}
	return sending, err
}

// replacedBy names a block that was sent after this one and may have replaced values of it.
func (i *Import) replacedBy(b *Block) string {
	for k := range i.Blocks {
		if o := &i.Blocks[k]; o.ID != b.ID && o.Tenant == b.Tenant && o.MinTime < b.MaxTime && b.MinTime < o.MaxTime &&
			i.State.progress(o).Samples > 0 && slices.IndexFunc(i.Blocks, func(x Block) bool { return x.Folder == b.Folder }) < k {
			return "block " + o.ID + " overlaps, was sent later and may have replaced it"
		}
	}
	return ""
}

// days calls fn with each day of a range that the progress says is left.
func days(from, to int64, p Progress, fn func(lo, hi int64, series uint64) error) error {
	if p.Begun {
		from = max(from, p.Until)
	}
	series := p.Series
	for lo := from; lo < to; {
		hi := min(to, floorDay(lo)+dayLength)
		if err := fn(lo, hi, series); err != nil {
			return err
		}
		lo, series = hi, 0
	}
	return nil
}

// floorDay returns the begin of the day in UTC.
func floorDay(ms int64) int64 {
	day := ms / dayLength
	if ms%dayLength < 0 {
		day--
	}
	return day * dayLength
}
