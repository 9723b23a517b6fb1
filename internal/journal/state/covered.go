package state

import (
	"encoding/json"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// Covered says how far the bucket has a partition.
type Covered struct {
	Partition Partition
	// Next is the first offset that it has not.
	Next int64
}

type coveredValue struct {
	Version int   `json:"version"`
	Next    int64 `json:"next"`
}

// Encode returns the key and the value of a record.
func (c *Covered) Encode() (key string, value []byte) {
	return c.Partition.key(coveredKind), encode(coveredValue{version, c.Next})
}

func decodeCovered(p Partition, value []byte) (any, error) {
	var v coveredValue
	err := json.Unmarshal(value, &v)
	if err == nil && v.Next < 0 {
		err = fmt.Errorf("%w: next is %d", model.ErrCorrupt, v.Next)
	}
	return &Covered{p, v.Next}, err
}
