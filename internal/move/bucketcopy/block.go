package bucketcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// errSourceGone says that the source has no object of a block any more.
var errSourceGone = errors.New("the source has deleted the block")

const (
	// pieceBytes is how much of a block is read with one request.
	pieceBytes = 8 << 20
	// A request is tried at most tries times. The pauses between the attempts begin with firstPause and double,
	// up to maxPause.
	tries      = 8
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// retry repeats do while its error is of class transient.
func retry(ctx context.Context, do func() error) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := do()
		if err == nil || try == tries || !errors.Is(err, model.ErrTransient) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause/2)):
			pause = min(2*pause, maxPause)
		}
	}
}

// copyBlock copies a block, reads it back from the target and verifies it. A block that is present is copied
// only if it is damaged.
func (c *Copy) copyBlock(ctx context.Context, b *catalog.Block, present bool) error {
	err := retry(ctx, func() error { return c.target.mark(ctx, b.ID) })
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if present {
		if err = c.verify(ctx, c.To, b); err == nil {
			c.target.keep(b.ID)
			return nil
		}
	}
	if err == nil || errors.Is(err, model.ErrCorrupt) {
		if err := c.upload(ctx, b); err != nil {
			return err
		}
		err = c.verify(ctx, c.To, b)
	}
	if err == nil {
		c.target.keep(b.ID)
		return nil
	}
	if !errors.Is(err, model.ErrCorrupt) {
		return fmt.Errorf("target: block %s: %w", b.ID, err)
	}
	if at := c.verify(ctx, c.From, b); errors.Is(at, model.ErrCorrupt) {
		return fmt.Errorf("source: block %s is damaged; repair the source by shale inspect catalogue --repair: %w", b.ID, at)
	}
	return fmt.Errorf("target: block %s is intact in the source, so the target does not return what was written: %w", b.ID, err)
}

// upload copies the object of a block.
func (c *Copy) upload(ctx context.Context, b *catalog.Block) error {
	name := catalog.ObjectName(b.ID)
	return retry(ctx, func() error {
		r := &objectReader{ctx: ctx, b: c.From, name: name, left: b.Bytes}
		err := c.To.Put(ctx, name, r, b.Bytes)
		if err == nil {
			c.copied.Add(b.Bytes)
			return nil
		}
		if r.err != nil { // a client may wrap it in a way that hides its class
			return r.err
		}
		return fmt.Errorf("target: %w", err)
	})
}

// objectReader reads an object of known size in pieces.
type objectReader struct {
	ctx  context.Context
	b    bucket.Bucket
	name string
	off  int64
	left int64
	rest []byte
	err  error
}

// Read reads the next bytes.
func (r *objectReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(r.rest) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		n := min(r.left, pieceBytes)
		err := retry(r.ctx, func() (err error) {
			r.rest, err = r.b.GetRange(r.ctx, r.name, r.off, n)
			return err
		})
		if errors.Is(err, bucket.ErrNotFound) {
			err = errSourceGone
		} else if err != nil {
			err = fmt.Errorf("source: %w", err)
		}
		if r.err = err; err != nil {
			return 0, err
		}
		r.off, r.left = r.off+n, r.left-n
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// verify reads a block and verifies the checksum of each of its pages, and that it is what its record says.
func (c *Copy) verify(ctx context.Context, from bucket.Bucket, b *catalog.Block) error {
	w := &windows{b: from, name: catalog.ObjectName(b.ID), size: b.Bytes}
	if from == c.To {
		w.read = &c.verified
	}
	r, err := part.OpenWith(ctx, w, w.Range, b.Bytes)
	if err == nil {
		err = part.VerifyPages(ctx, r)
	}
	if err != nil {
		return err
	}
	m := r.Meta()
	switch {
	case m.Seed != c.seed:
		return fmt.Errorf("%w: it is of another bucket: its key seed is %016x, expected %016x", model.ErrCorrupt, uint64(m.Seed), uint64(c.seed))
	case m.Signal != b.Signal || m.Series != b.Series || m.Samples != b.Samples || m.Range != b.Range:
		return fmt.Errorf("%w: it does not match its commit record: expected %d series and %d samples, got %d and %d",
			model.ErrCorrupt, b.Series, b.Samples, m.Series, m.Samples)
	}
	return nil
}

// put writes a small object.
func put(ctx context.Context, b bucket.Bucket, name string, data []byte) error {
	return retry(ctx, func() error { return b.Put(ctx, name, strings.NewReader(string(data)), int64(len(data))) })
}
