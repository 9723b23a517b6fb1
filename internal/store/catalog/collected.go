package catalog

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/checksum"
)

// A list of collected records is written before the records are deleted. So a known record that is gone and
// on no list is lost.

const collectedVersion = 1

// listsKept is how long a list of collected records stays. A process that was away for longer cannot tell
// collected records from lost ones.
const listsKept = 30 * 24 * time.Hour

// collectedList is an object below collected/.
type collectedList struct {
	Version int `json:"version"`
	// Collected is in Unix nanoseconds, and not before any of the records. A record of a later time was
	// committed again afterwards, and is not meant.
	Collected int64    `json:"collected"`
	Records   []string `json:"records"`
	// Accepted says that the records were lost, and that somebody has decided to do without them.
	Accepted bool `json:"accepted,omitempty"`
}

// timeDigits is the length of the time at the beginning of the name of a list. Names are sorted by time.
const timeDigits = 20

// putCollected writes the list of records that are about to be deleted.
func putCollected(ctx context.Context, b bucket.Bucket, now int64, rs []*commit, accepted bool) error {
	l := collectedList{Version: collectedVersion, Collected: now, Accepted: accepted}
	for _, r := range rs {
		l.Records = append(l.Records, r.id)
		l.Collected = max(l.Collected, r.committed)
	}
	data, err := json.Marshal(&l)
	if err != nil {
		return fmt.Errorf("%w: list of collected records: %v", model.ErrInvalid, err)
	}
	_, err = b.PutIfAbsent(ctx, fmt.Sprintf("%s%0*d-%s.json", CollectedPrefix, timeDigits, max(0, l.Collected), nonce()), checksum.Seal(append(data, '\n')))
	return err
}

// nonce makes a name unique among processes.
func nonce() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// listsOf returns the names of the lists of collected records, the newest first.
func listsOf(ctx context.Context, b Reader) (names []string, err error) {
	err = b.List(ctx, CollectedPrefix, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	})
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(b, a) })
	return names, err
}

// collectedAmong removes from a set of missing records those that a list of collected ones names, and returns
// the names of all lists. skip reports lists that need not be read.
func collectedAmong(ctx context.Context, b Reader, missing map[string]*commit, skip func(name string) bool) (names []string, err error) {
	if len(missing) == 0 {
		return nil, nil
	}
	if names, err = listsOf(ctx, b); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(names, parallelReads) {
		if len(missing) == 0 {
			break
		}
		lists := make([]collectedList, len(some))
		g, ctx := errgroup.WithContext(ctx)
		for i, name := range some {
			if skip(name) {
				continue
			}
			g.Go(model.Catching(func() (err error) {
				lists[i], err = readCollected(ctx, b, name)
				return err
			}))
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for _, l := range lists {
			for _, id := range l.Records {
				if r := missing[id]; r != nil && r.committed <= l.Collected {
					delete(missing, id)
				}
			}
		}
	}
	return names, nil
}

// readCollected returns a list of collected records. It is empty if the object is gone by now. It is also
// empty if the object is damaged: what it named counts as lost, rather than missing without a word.
func readCollected(ctx context.Context, b Reader, name string) (l collectedList, err error) {
	data, err := b.Get(ctx, name)
	if errors.Is(err, bucket.ErrNotFound) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	if err := checksum.Parse(name, data, collectedVersion, &l); errors.Is(err, model.ErrCorrupt) {
		return collectedList{}, nil
	} else if err != nil {
		return l, err
	}
	return l, nil
}

// searchedLists says which records the lists of collected records do not name.
type searchedLists struct{ records, lists map[string]bool }

// cover reports whether the lists were searched for all of the records.
func (s *searchedLists) cover(rs map[string]*commit) bool {
	for id := range rs {
		if !s.records[id] {
			return false
		}
	}
	return true
}

func searched(rs map[string]*commit, names []string) (s searchedLists) {
	if len(rs) == 0 {
		return s
	}
	s = searchedLists{map[string]bool{}, map[string]bool{}}
	for id := range rs {
		s.records[id] = true
	}
	for _, name := range names {
		s.lists[name] = true
	}
	return s
}

// purgeLists deletes lists of collected records that are too old to matter, once a day.
func (c *Catalog) purgeLists(ctx context.Context) error {
	now := c.now()
	if now-c.purged < int64(24*time.Hour) && now >= c.purged {
		return nil
	}
	names, err := listsOf(ctx, c.b)
	if err != nil {
		return err
	}
	for _, name := range names {
		digits := strings.TrimPrefix(name, CollectedPrefix)
		at, err := strconv.ParseInt(digits[:min(timeDigits, len(digits))], 10, 64)
		if err != nil || at >= now-int64(listsKept) {
			continue
		}
		if err := c.b.Delete(ctx, name); err != nil {
			return err
		}
	}
	c.purged = now
	return nil
}
