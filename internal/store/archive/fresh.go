package archive

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// freshTime bounds how long the tiers may take for a block: whoever writes it waits for them.
const freshTime = 10 * time.Second

// Fresh gives the pages of a block that was just written to the secondary tier, from a file, so that the
// first queries for the newest rows do not read them from the bucket. A tier may take none of them, or some.
// Memory takes none: it holds decoded pages, and decoding what no query wants would cost processor time.
//
// An error means that the file could not be read. The block does not depend on it.
func (a *Archive) Fresh(ctx context.Context, b *catalog.Block, from io.ReaderAt) error {
	if a.o.Secondary == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, freshTime)
	defer cancel()
	r, err := part.Open(ctx, from, b.Bytes)
	if err != nil {
		return err
	}
	view := ledger.View{Version: a.versionOf(b)}
	object := catalog.ObjectName(b.ID)
	give := func(k cache.Key, off, n int64) (more bool, err error) {
		value := make([]byte, n)
		if _, err := from.ReadAt(value, off); err != nil && err != io.EOF {
			return false, fmt.Errorf("%w: %v", model.ErrTransient, err)
		}
		return a.o.Secondary.Fresh(ctx, k, value), nil
	}
	end := min(b.Bytes, a.reach.tail)
	if b.Bytes <= a.reach.whole {
		end = b.Bytes
	}
	more, err := give(cache.Key{Object: object, Kind: cache.End, Digest: view.Version}, b.Bytes-end, end)
	if err != nil || !more {
		return err
	}
	pages, err := part.PagesOf(ctx, r)
	if err != nil {
		return err
	}
	for _, at := range pages {
		if more, err := give(view.StoredKey(object, at.Off), at.Off, int64(at.Len)); err != nil || !more {
			return err
		}
	}
	return nil
}
