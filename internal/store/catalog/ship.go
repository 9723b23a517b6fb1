package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Ship is what one process makes visible at once.
type Ship struct {
	// Blocks count as newer than every block that was visible before. No two of them have rows of one series
	// and time.
	Blocks []Block
	// Covered has an entry for each journal that the ship goes on with, at least one.
	Covered []Coverage
	Skipped []Skip

	// Life names the shipper of a journal that several may take for theirs, at the same time or one after the
	// other. Then the ship covers one journal, and After is the number of its last ship that the life knows of.
	// The ship is stale if another life has shipped since, even if that moved no coverage. Empty: the coverage
	// alone tells, and all ships of this process are those of one life.
	Life  string
	After uint64
}

// ErrStale says that another process ships the journal. What this one holds is in the bucket already, or will
// be: it must not be shipped. The error has no class of model.
var ErrStale = errors.New("another process ships this journal")

const (
	// maxUpload bounds the time from the start of an upload to its commit. It is far below the age at which an
	// object without a record counts as garbage, so that a process that slept in between does not commit a
	// deleted object.
	maxUpload = time.Hour
	// A commit lists the bucket, and then creates the next record. If it slept in between for as long as
	// records of ships are kept (shipsKept), it could create a record that was collected.
	commitWithin = 15 * time.Minute
	commitRounds = 50
	// After a round that another process has won, a random pause keeps the losers apart.
	pauseLeast, pauseMost = 20 * time.Millisecond, 200 * time.Millisecond
)

// Ship makes blocks visible, all at once: it calls upload for each block that has no record, which writes
// the object, and then writes the record. Blocks that were committed before are left out, even if they are
// hidden by now. After an error of class transient the commit may have happened or not. Then call Ship again
// with the same From and the same blocks, and with more if need be.
// It returns how far each journal is shipped by its record, or by an earlier one of the life that has it all.
func (c *Catalog) Ship(ctx context.Context, s Ship, upload func(ctx context.Context, id string) error) ([]Progress, error) {
	if len(s.Covered) == 0 {
		return nil, fmt.Errorf("catalogue: ship: %w: the ship covers no journal", model.ErrInvalid)
	}
	if s.Life != "" && len(s.Covered) > 1 {
		return nil, fmt.Errorf("catalogue: ship: %w: a life ships one journal, and the ship covers %d", model.ErrInvalid, len(s.Covered))
	}
	s.Blocks = completed(s.Blocks)
	if err := c.Poll(ctx); err != nil {
		return nil, err
	}
	if _, _, err := c.nextShip(&s, ""); err != nil { // before the uploads
		return nil, fmt.Errorf("catalogue: ship: %w", err)
	}
	began := time.Now()
	if left := c.uncommitted(s.Blocks); len(left) > 0 {
		done, err := c.Uploading(ctx, left...)
		if err != nil {
			return nil, fmt.Errorf("catalogue: announce the upload of %s: %w", brief(left), err)
		}
		defer done()
		for _, id := range left {
			if err := upload(ctx, id); err != nil {
				return nil, fmt.Errorf("catalogue: upload %s: %w", id, err)
			}
		}
	}
	// The monotonic clock stops while the machine sleeps; the wall clock does not.
	if now := time.Now(); now.Sub(began) > maxUpload || now.Round(0).Sub(began.Round(0)) > maxUpload {
		return nil, fmt.Errorf("catalogue: ship: %w: the upload took longer than %s", model.ErrTransient, maxUpload)
	}
	shipped, err := c.commitShip(ctx, &s)
	if err != nil {
		return nil, fmt.Errorf("catalogue: ship: %w", err)
	}
	c.endUploads(ctx, s.Blocks)
	return shipped, nil
}

func completed(blocks []Block) []Block {
	blocks = append([]Block(nil), blocks...)
	for i := range blocks {
		blocks[i].Complete()
	}
	return blocks
}

// uncommitted returns the ids of the blocks that have no record.
func (c *Catalog) uncommitted(blocks []Block) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range blocks {
		if c.holder[blocks[i].ID] == nil {
			ids = append(ids, blocks[i].ID)
		}
	}
	return ids
}

// endUploads removes the markers of blocks that have a record now. An upload may have written the object of a
// hidden block once more after it was deleted.
func (c *Catalog) endUploads(ctx context.Context, blocks []Block) {
	for i := range blocks {
		c.mu.Lock()
		delete(c.gone, blocks[i].ID)
		c.mu.Unlock()
		c.unmark(ctx, blocks[i].ID)
	}
}

// commitShip writes the record of a ship under the next free number. The objects must be complete.
func (c *Catalog) commitShip(ctx context.Context, s *Ship) ([]Progress, error) {
	if err := c.commits.Take(ctx); err != nil {
		return nil, err
	}
	defer c.commits.Give()
	ctx, cancel := context.WithTimeout(ctx, commitWithin)
	defer cancel()
	c.attempts++
	attempt := fmt.Sprintf("%s%s%d", s.Covered[0].Node, c.by(s), c.attempts)
	for round := range commitRounds {
		if round > 0 {
			select {
			case <-time.After(pauseLeast + rand.N(pauseMost-pauseLeast)):
			case <-ctx.Done():
				return nil, fmt.Errorf("%w: %w", model.ErrTransient, ctx.Err())
			}
		}
		// A listing, as the record of the next number may have been collected: a GET does not tell.
		if err := c.Refresh(ctx); err != nil {
			return nil, err
		}
		r, shipped, err := c.nextShip(s, attempt)
		if err != nil {
			return nil, err
		}
		if r == nil { // an earlier attempt was successful, and its response was lost
			c.metrics.ships.WithLabelValues(shipLostAck).Inc()
			return shipped, nil
		}
		if done, err := c.createShip(ctx, r); done || err != nil {
			return shipped, err
		}
	}
	return nil, fmt.Errorf("%w: other processes were faster %d times", model.ErrTransient, commitRounds)
}

// by is the middle of the attempts of this process, or of a life in it.
func (c *Catalog) by(s *Ship) string { return "/" + strings.TrimSuffix(c.boot+"."+s.Life, ".") + "/" }

// life returns the life in the attempt of a ship: see by.
func (r *commit) life() string {
	parts := strings.Split(r.attempt, "/")
	_, life, _ := strings.Cut(parts[max(0, len(parts)-2)], ".")
	return life
}

// fits reports whether a journal is where its shipper believes it to be.
func (c *Catalog) fits(s *Ship, v *Coverage) bool {
	last := c.progress(v.Journal())
	// An attempt of this process may have been successful without its knowledge.
	mine := last.Ship > 0 && strings.Contains(c.covered[v.Journal()].attempt, c.by(s))
	if s.Life == "" {
		return last.To+1 == v.From || mine && last.From == v.From
	}
	return last.Ship == s.After && last.To+1 == v.From || mine && last.Ship > s.After
}

// nextShip returns the next record for what of a ship has no record yet, or nil if that is nothing. It also
// returns how far the journals are shipped with the record.
func (c *Catalog) nextShip(s *Ship, attempt string) (*commit, []Progress, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Also above the blocks whose ship is lost.
	r := &commit{ship: max(c.lastShip, c.maxOrder) + 1, attempt: attempt, committed: c.now(), skipped: s.Skipped}
	r.id = shipID(r.ship)
	advances, closed, shipped := false, "", make([]Progress, 0, len(s.Covered))
	for _, v := range s.Covered {
		last := c.progress(v.Journal())
		if !c.fits(s, &v) {
			who := "no ship"
			if by := c.covered[v.Journal()]; by != nil {
				who = fmt.Sprintf("%s of %s", by.id, by.attempt)
			}
			c.metrics.ships.WithLabelValues(shipStale).Inc()
			return nil, nil, fmt.Errorf("%w: the journal %s/%d: expected it to be covered up to %d, and %s covers it up to %d",
				ErrStale, v.Node, v.Epoch, v.From-1, who, last.To)
		}
		v.From = last.To + 1
		v.To, v.Appended = max(v.To, last.To), max(v.Appended, last.Appended)
		if v.To == last.To && v.Leaders == 0 {
			v.Leaders = last.Leaders // nothing is added
		}
		advances = advances || v.To > last.To || v.Closed && !last.Closed || v.To == last.To && v.Leaders != last.Leaders
		if last.Closed {
			v.Closed, closed = true, fmt.Sprintf("%s/%d", v.Node, v.Epoch)
		}
		r.covered, shipped = append(r.covered, v), append(shipped, last)
	}
	for _, b := range s.Blocks {
		if c.holder[b.ID] == nil {
			b.OrderLo, b.OrderHi, b.Generation = r.ship, r.ship, shippedGeneration(&b, c.allDeletions(), c.maxGeneration)
			r.blocks = append(r.blocks, b)
		}
	}
	if len(r.blocks) == 0 && !advances {
		return nil, shipped, nil
	}
	if closed != "" { // ships of another journal may rely on its end
		c.metrics.ships.WithLabelValues(shipStale).Inc()
		return nil, nil, fmt.Errorf("%w: the journal %s is closed", ErrStale, closed)
	}
	for i := range shipped {
		shipped[i] = Progress{r.covered[i], r.ship, s.Life}
	}
	return r, shipped, nil
}

// createShip writes a record unless its number is taken, and reports whether it is there.
func (c *Catalog) createShip(ctx context.Context, r *commit) (done bool, err error) {
	stored, data, err := r.stored()
	if err != nil {
		return false, err
	}
	created, err := c.b.PutIfAbsent(ctx, recordName(r.id), data)
	result := shipWon
	if err != nil || !created {
		// The response may have been lost, also between the store and its client, which repeats requests.
		there, readErr := c.readOne(ctx, r.id)
		if readErr != nil {
			return false, errors.Join(err, readErr)
		}
		if there == nil {
			return false, err
		}
		if there.attempt != r.attempt {
			c.metrics.ships.WithLabelValues(shipConflict).Inc()
			return false, nil
		}
		result = shipLostAck
	}
	c.metrics.ships.WithLabelValues(result).Inc()
	stored.ours = true
	c.know(stored)
	c.keep(ctx, stored, data)
	return true, nil
}

// shipsKept is how long the record of a ship stays at least. A missing number below the greatest one means
// that the record was collected. Processes that read numbers one by one between two listings rely on it, and
// so do those that list and then create the next number.
const shipsKept = 24 * time.Hour

// shipsLeave is the interval whose ships leave together. Each collection of records writes a list of them,
// and a list for each ship would soon be most of the objects of the bucket.
const shipsLeave = 6 * time.Hour

// shipStays reports whether a record of a ship is needed although its blocks are gone. What it gives up is
// said in answers for as long as they may reach so far back, which is for retention to say. mu must be held.
func (c *Catalog) shipStays(r *commit) bool {
	if r.ship == 0 {
		return false
	}
	now := c.now()
	if len(r.skipped) > 0 || r.ship == c.lastShip || now-now%int64(shipsLeave)-r.committed < int64(shipsKept) {
		return true
	}
	for i := range r.covered {
		if c.covered[r.covered[i].Journal()] == r {
			return true
		}
	}
	return false
}
