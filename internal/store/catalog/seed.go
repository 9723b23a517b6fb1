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
	"github.com/shaledb/shale/internal/store/catalog/checksum"
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
// get the same seed. A bucket with other objects of ours and without a seed is an error of class corrupt: no
// query would find its rows by another seed, and a copy that has begun to fill it brings the seed last.
func EnsureSeed(ctx context.Context, b bucket.Bucket) (model.KeySeed, error) {
	seed, err := readSeed(ctx, b)
	if !errors.Is(err, bucket.ErrNotFound) {
		return seed, err
	}
	for _, prefix := range []string{RecordPrefix, BlockPrefix, UploadPrefix, CollectedPrefix, CopyPrefix} {
		err := b.List(ctx, prefix, func(name string, _ int64) error {
			return fmt.Errorf("%w: it has %s", errOccupied, name)
		})
		if errors.Is(err, errOccupied) {
			// Another process may have drawn a seed and used it since we looked.
			if seed, e := readSeed(ctx, b); !errors.Is(e, bucket.ErrNotFound) {
				return seed, e
			}
			return 0, fmt.Errorf("%s: %w: the object is missing, but the bucket is %v", SeedName, model.ErrCorrupt, err)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", SeedName, err)
		}
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return 0, fmt.Errorf("%s: %w: %w", SeedName, model.ErrTransient, err)
	}
	data, err := storedSeed(model.KeySeed(binary.BigEndian.Uint64(random[:])))
	if err != nil {
		return 0, err
	}
	if _, err := b.PutIfAbsent(ctx, SeedName, data); err != nil {
		return 0, fmt.Errorf("%s: %w", SeedName, err)
	}
	// Another process may have been first.
	return readSeed(ctx, b)
}

// storedSeed returns the content of the seed's object.
func storedSeed(seed model.KeySeed) ([]byte, error) {
	data, err := json.Marshal(seedRecord{Version: seedVersion, Seed: fmt.Sprintf("%016x", uint64(seed))})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %v", SeedName, model.ErrInvalid, err)
	}
	return checksum.Seal(append(data, '\n')), nil
}

// Seed returns the key seed of the bucket, or bucket.ErrNotFound.
func Seed(ctx context.Context, b Reader) (model.KeySeed, error) { return readSeed(ctx, b) }

// readSeed returns the seed, or that of its copy if it is missing or damaged.
func readSeed(ctx context.Context, b Reader) (model.KeySeed, error) {
	seed, err := readSeedObject(ctx, b, SeedName)
	if errors.Is(err, bucket.ErrNotFound) || errors.Is(err, model.ErrCorrupt) {
		if spare, e := readSeedObject(ctx, b, copyName(SeedName)); e == nil {
			return spare, nil
		}
	}
	return seed, err
}

// keepSeed copies the seed if it has no copy, and logs that it is missing, damaged or another one.
func (c *Catalog) keepSeed(ctx context.Context) error {
	seed, err := readSeedObject(ctx, c.b, SeedName)
	copied, spare := readSeedObject(ctx, c.b, copyName(SeedName))
	if err == nil && spare == nil && seed != copied {
		c.log.Error("the seed of the bucket is not that of its copy: one of them is of another bucket", "remedy", remedy)
	}
	if err != nil && spare == nil {
		c.log.Error("the seed of the bucket is missing or damaged; its copy is used", "err", err, "remedy", remedy)
	}
	if err != nil || !errors.Is(spare, bucket.ErrNotFound) {
		return nil
	}
	data, err := c.b.Get(ctx, SeedName)
	if err == nil {
		_, err = c.b.PutIfAbsent(ctx, copyName(SeedName), data)
	}
	return err
}

func readSeedObject(ctx context.Context, b Reader, name string) (model.KeySeed, error) {
	data, err := b.Get(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	var r seedRecord
	if err := checksum.Parse(name, data, seedVersion, &r); err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(r.Seed, 16, 64)
	if err != nil || len(r.Seed) != 16 {
		return 0, fmt.Errorf("%s: %w: the seed %q is not 16 hexadecimal digits", name, model.ErrCorrupt, r.Seed)
	}
	return model.KeySeed(n), nil
}
