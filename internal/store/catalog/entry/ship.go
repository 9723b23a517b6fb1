package entry

import (
	"fmt"
	"strconv"
	"strings"
)

// ShipPrefix begins the ids of ships.
const ShipPrefix = "ship-"

// ShipID names the record of a ship. The name depends on the number alone, so that exactly one of several
// concurrent writers succeeds.
func ShipID(n uint64) string { return fmt.Sprintf("%s%016d", ShipPrefix, n) }

// ShipNumber returns the number of a ship, 0 if the id is that of another record.
func ShipNumber(id string) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(id, ShipPrefix), 10, 64)
	if err != nil || n > MaxNumber || ShipID(n) != id {
		return 0
	}
	return n
}
