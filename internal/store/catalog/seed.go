package catalog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

const seedVersion = 1

// seedRecord is the object `seed`.
type seedRecord struct {
	Version int `json:"version"`
	// Seed is 16 hexadecimal digits: many JSON readers would round a number.
	Seed string `json:"seed"`
}

var errOccupied = errors.New("not empty")

// EnsureSeed returns the key seed of the bucket, and draws one if the bucket is empty. Concurrent processes
// get the same seed. A bucket with blocks and without a seed is an error of class corrupt: no query would
// find its rows by another seed.
func EnsureSeed(ctx context.Context, b bucket.Bucket) (model.KeySeed, error) {
	seed, err := readSeed(ctx, b)
	if !errors.Is(err, bucket.ErrNotFound) {
		return seed, err
	}
	for _, prefix := range []string{recordPrefix, blockPrefix} {
		err := b.List(ctx, prefix, func(name string, _ int64) error {
			return fmt.Errorf("%w: it has %s", errOccupied, name)
		})
		if errors.Is(err, errOccupied) {
			// Another process may have drawn a seed and used it since we looked.
			if seed, e := readSeed(ctx, b); !errors.Is(e, bucket.ErrNotFound) {
				return seed, e
			}
			return 0, fmt.Errorf("%s: %w: the object is missing, but the bucket is %v", seedName, model.ErrCorrupt, err)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", seedName, err)
		}
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return 0, fmt.Errorf("%s: %w: %w", seedName, model.ErrTransient, err)
	}
	data, err := json.Marshal(seedRecord{Version: seedVersion, Seed: fmt.Sprintf("%016x", binary.BigEndian.Uint64(random[:]))})
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %v", seedName, model.ErrInvalid, err)
	}
	if _, err := b.PutIfAbsent(ctx, seedName, sealed(append(data, '\n'))); err != nil {
		return 0, fmt.Errorf("%s: %w", seedName, err)
	}
	// Another process may have been first.
	return readSeed(ctx, b)
}

// Seed returns the key seed of the bucket, or bucket.ErrNotFound.
func Seed(ctx context.Context, b Reader) (model.KeySeed, error) { return readSeed(ctx, b) }

func readSeed(ctx context.Context, b Reader) (model.KeySeed, error) {
	data, err := b.Get(ctx, seedName)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", seedName, err)
	}
	var r seedRecord
	if err := parse(seedName, data, seedVersion, &r); err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(r.Seed, 16, 64)
	if err != nil || len(r.Seed) != 16 {
		return 0, fmt.Errorf("%s: %w: the seed %q is not 16 hexadecimal digits", seedName, model.ErrCorrupt, r.Seed)
	}
	return model.KeySeed(n), nil
}
