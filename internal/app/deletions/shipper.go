package deletions

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/decision"
	"github.com/shaledb/shale/internal/store/deletion"
)

// patience is how long a ship waits for a decision that is being made.
const patience = 2 * time.Second

// Shipper settles deletions whose orders a head has read, before it ships: see the package. It is a
// head.Deleter.
type Shipper struct {
	Bucket  bucket.Bucket
	Catalog *catalog.Catalog
}

// Delete returns once the request is carried out or given up.
func (s Shipper) Delete(ctx context.Context, _ uint64, x *deletion.Deletion) error {
	if s.Catalog.Requested(x.Tenant, x.Request) {
		return nil
	}
	fences, known, err := decision.Read(ctx, s.Bucket, x.Request)
	if err == nil && !known {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(patience):
		}
		fences, err = decision.Take(ctx, s.Bucket, x.Request, nil)
	}
	if err != nil || len(fences) == 0 {
		return err
	}
	_, err = s.Catalog.Delete(ctx, catalog.Deletion{Deletion: *x, Fences: fences})
	return err
}

// Cancel does nothing: whether a deletion was cancelled, queries know from the catalogue.
func (s Shipper) Cancel(context.Context, string, string) error { return nil }
