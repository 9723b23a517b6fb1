package archive

import (
	"context"
	"fmt"
	"sync"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// maxShares bounds the shares of tenants in blocks that are remembered: 24 bytes each and their names.
const maxShares = 200_000

// stored remembers the shares of tenants in blocks, which never change.
type stored struct {
	mu     sync.Mutex
	blocks map[string][]share
	shares int
}

// share is a tenant's part of a block.
type share struct {
	tenant string
	bytes  int64
}

// StoredBytes returns how many bytes each tenant has in some blocks. The bytes of a block with several
// tenants are divided by what their rows take, about. Blocks of more tenants than can be remembered are
// opened each time, by their footers. A block that cannot be read does not count, with an error besides the
// sums. There are no sums once the context has ended; what was learned until then is remembered.
func (a *Archive) StoredBytes(ctx context.Context, live []catalog.Block) (map[string]int64, error) {
	a.stored.mu.Lock()
	defer a.stored.mu.Unlock()
	sums := map[string]int64{}
	before := a.stored.blocks
	a.stored.blocks, a.stored.shares = map[string][]share{}, 0
	var first error
	failed := 0
	for i := range live {
		b := &live[i]
		if len(b.Tenants) == 1 {
			sums[b.Tenants[0]] += b.Bytes
			continue
		}
		shares := before[b.ID]
		if shares == nil {
			err := ctx.Err()
			if err == nil {
				shares, err = a.shares(ctx, b)
			}
			if err != nil {
				if failed++; first == nil {
					first = fmt.Errorf("block %s: %w", b.ID, err)
				}
				continue
			}
		}
		if a.stored.shares += len(shares); a.stored.shares <= maxShares {
			a.stored.blocks[b.ID] = shares
		}
		for _, s := range shares {
			sums[s.tenant] += s.bytes
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if failed > 1 {
		first = fmt.Errorf("%d blocks, of which the first: %w", failed, first)
	}
	return sums, first
}

// shares reads the footer of a block.
func (a *Archive) shares(ctx context.Context, b *catalog.Block) ([]share, error) {
	req := &model.Request{Signal: b.Signal, Quota: new(model.Quota), Cost: new(model.Cost)}
	defer req.Quota.Release()
	block, err := a.openBlock(ctx, b, req, newLanes())
	if err != nil {
		return nil, err
	}
	defer block.close()
	return divide(block.Meta().Tenants, b.Bytes), nil
}

// divide divides the bytes of a block among its tenants.
func divide(tenants []part.Tenant, bytes int64) []share {
	weight := func(t *part.Tenant) float64 {
		// What a series, a sample and a byte of a line take, about: docs/operations.md, section Capacity.
		return 40*float64(t.Series) + 0.85*float64(t.Samples+t.Exemplars) + 0.18*float64(t.TextBytes)
	}
	total := 0.0
	for i := range tenants {
		total += weight(&tenants[i])
	}
	shares := make([]share, len(tenants))
	for i := range tenants {
		shares[i] = share{tenants[i].Name, int64(float64(bytes) * weight(&tenants[i]) / max(1, total))}
	}
	return shares
}
