package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shaledb/shale/internal/store/catalog/entry"
)

var shipPrefix, shipID, shipNumber = entry.ShipPrefix, entry.ShipID, entry.ShipNumber

// addShip validates what only ships have, and adds it to a record.
func (r *record) addShip(c *commit) error {
	c.ship = shipNumber(r.ID)
	if c.ship == 0 {
		if strings.HasPrefix(r.ID, shipPrefix) || r.Attempt != "" || len(r.Covered)+len(r.Skipped) > 0 {
			return errors.New("the record has members of a ship, and its name is not that of one")
		}
		return nil
	}
	if r.Attempt == "" || len(r.Covered) == 0 || len(r.Replaces) > 0 || r.Deletion != nil {
		return errors.New("the ship has no attempt, covers no journal, or does what only other records do")
	}
	for i := range c.blocks {
		if b := &c.blocks[i]; b.Level != Shipped || b.OrderLo != c.ship || b.OrderHi != c.ship {
			return fmt.Errorf("block %q of ship %d has level %d and the order numbers %d to %d", b.ID, c.ship, b.Level, b.OrderLo, b.OrderHi)
		}
	}
	for _, e := range r.Covered {
		v := Coverage(e)
		if e.From == 0 || e.To > maxNumber || e.From > e.To+1 || c.coverage(v.Journal()) != nil {
			return fmt.Errorf("invalid coverage of the journal %s/%d from %d to %d", e.Node, e.Epoch, e.From, e.To)
		}
		c.covered = append(c.covered, v)
	}
	for _, e := range r.Skipped {
		if e.From == 0 || e.To > maxNumber || e.From > e.To || e.Why == "" {
			return fmt.Errorf("invalid skip of the journal %s/%d from %d to %d", e.Node, e.Epoch, e.From, e.To)
		}
		c.skipped = append(c.skipped, Skip(e))
	}
	return nil
}
