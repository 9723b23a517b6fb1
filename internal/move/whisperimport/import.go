package whisperimport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/move/remote"
)

// Import sends the files of a folder to a server. It runs once.
type Import struct {
	Dir    string
	Names  *Names
	Server *client.Server
	State  *State
	// Concurrency is how many files are read, and how many requests are sent, at one time.
	Concurrency int
	// Patience bounds how long the server may acknowledge nothing.
	Patience time.Duration
	// Verify reads everything back after it was sent.
	Verify bool

	done    atomic.Int64
	earlier atomic.Int64
	points  atomic.Int64
	sender  *remote.Sender
}

// Report says what an import did.
type Report struct {
	// Tally counts what all runs did, and Before the files of earlier runs.
	Tally
	Before   int64   `json:"files_before"`
	Requests int64   `json:"requests"`
	Retries  int64   `json:"retries"`
	Sent     int64   `json:"bytes_sent"`
	Seconds  float64 `json:"seconds"`
	// FilesRate and PointsRate are of this run, while files were sent.
	FilesRate    float64       `json:"files_per_second"`
	PointsRate   float64       `json:"points_per_second"`
	Verification *Verification `json:"verification,omitempty"`
}

// Done returns how many files are sent or verified, and how many of them were so before this run.
func (i *Import) Done() (done, earlier int64) { return i.done.Load(), i.earlier.Load() }

// Points returns how many points and rollups this run has sent.
func (i *Import) Points() int64 { return i.points.Load() }

// Run sends all files, and verifies them if asked. The report is there even with an error, and the state file
// says where the next run goes on.
func (i *Import) Run(ctx context.Context) (r *Report, err error) {
	begun := time.Now()
	i.sender = remote.NewSender(i.Server, i.Patience)
	r = &Report{Before: i.State.Tally.seen()}
	i.earlier.Store(r.Before)
	i.done.Store(r.Before)
	if !i.State.Sent {
		if err = i.send(ctx); err == nil {
			i.State.Sent = true
		}
	}
	sending := time.Since(begun).Seconds()
	r.Tally = i.State.Tally
	r.FilesRate, r.PointsRate = float64(r.seen()-r.Before)/sending, float64(i.Points())/sending
	if err == nil && i.Verify {
		r.Verification = &Verification{}
		err = i.verify(ctx, r.Verification)
	}
	err = errors.Join(err, i.State.Save())
	r.Requests, r.Retries, r.Sent, r.Seconds = i.sender.Requests.Load(), i.sender.Retries.Load(), i.sender.Bytes.Load(), time.Since(begun).Seconds()
	return r, err
}

func (i *Import) reader() *reader {
	return &reader{dir: i.Dir, names: i.Names, dialect: i.State.Dialect, now: i.State.Now}
}

// Schema is what the files of one layout have.
type Schema struct {
	Retentions string `json:"retentions"`
	Tally
}

// DryRun reads all files and sends nothing. It returns the tally of all, and of each layout.
func (i *Import) DryRun(ctx context.Context) (all Tally, schemas []Schema, err error) {
	by := map[string]*Tally{}
	err = i.reader().each(ctx, "", max(1, i.Concurrency), func(s *series) error {
		i.done.Add(1)
		all.add(&s.tally)
		if s.rows == nil {
			return nil
		}
		if by[s.retentions] == nil {
			if len(by) == maxListed {
				return fmt.Errorf("the files have more than %d layouts", maxListed)
			}
			by[s.retentions] = &Tally{}
		}
		by[s.retentions].add(&s.tally)
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(by)) {
		schemas = append(schemas, Schema{name, *by[name]})
	}
	return all, schemas, err
}
