package series

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// NewKeyCursor returns a cursor before the first key of a tenant.
func NewKeyCursor(ctx context.Context, r *file.Reader, tenant string) *KeyCursor {
	c := &KeyCursor{Pages: file.NewWalk(ctx, r, KeySection)}
	if t := r.Meta().Tenant(tenant); t != nil {
		c.EnterTenant(t)
	}
	return c
}

// NewKeyStream returns a cursor for a walk over all keys.
func NewKeyStream(r *file.Reader) *KeyCursor {
	return &KeyCursor{Pages: file.NewStreamWalk(r, KeySection)}
}

// Enter moves the cursor before the first key of another tenant, and reports whether the part has the tenant.
// Open pages stay open: many small tenants share a page of the index, which a cursor per tenant would read
// each time.
func (c *KeyCursor) Enter(tenant string) bool {
	t := c.Pages.Reader.Meta().Tenant(tenant)
	if t == nil {
		t = &file.Tenant{}
	}
	c.EnterTenant(t)
	return t.Series > 0
}

// EnterTenant makes the cursor begin with a tenant.
func (c *KeyCursor) EnterTenant(t *file.Tenant) {
	c.begin, c.end = t.Rank0, t.Rank0+t.Series
	c.next = c.begin
	c.dir.group, c.dir.probed = -1, -1 // Find starts over, too
}

// KeyCursor walks the keys of one tenant in order.
type KeyCursor struct {
	Pages      file.Walk
	begin, end uint32 // ranks of the tenant
	next       uint32
	dir        keyDir
	off        int64 // of the page in dir
	err        error
}

// Next moves to the next key. It returns false at the end or on an error.
func (c *KeyCursor) Next() bool {
	if c.err != nil || c.next >= c.end {
		c.next = c.end + 1
		return false
	}
	if c.err = c.load(c.next); c.err != nil {
		return false
	}
	if err := c.dir.load(int(c.next - c.dir.rank0)); err != nil {
		c.err = c.locate(err)
		return false
	}
	c.next++
	return true
}

// Seek moves to a rank of the tenant.
func (c *KeyCursor) Seek(rank uint32) bool {
	if c.err != nil || rank < c.begin || rank >= c.end {
		c.next = c.end + 1
		return false
	}
	c.next = rank
	return c.Next()
}

// load opens the page that has a rank, unless it is the open one.
func (c *KeyCursor) load(rank uint32) error {
	if n := uint32(c.dir.count); n > 0 && rank >= c.dir.rank0 && rank-c.dir.rank0 < n {
		return nil
	}
	e, err := c.Pages.Cover(rank)
	if err != nil {
		return err
	}
	return c.loadPage(e)
}

// locate adds the address of the page to an error.
func (c *KeyCursor) locate(err error) error { return file.AtPage(file.Addr{Off: c.off}, err) }

func (c *KeyCursor) loadPage(e *file.Entry) error {
	c.dir.count, c.off = 0, e.Addr.Off
	payload, err := c.Pages.Load(e)
	if err != nil {
		return err
	}
	if err := c.dir.decode(payload); err != nil {
		return file.AtPage(e.Addr, err)
	}
	if c.dir.rank0 != e.Rank0 || uint32(c.dir.count) != e.Ranks || c.dir.first(0) != e.Key {
		c.dir.count = 0
		return file.AtPage(e.Addr, column.Corrupt("page of keys is not the one that the index names"))
	}
	return nil
}

// SeekGE moves to the first key that is not less than k, from any position. It returns false if there is
// none, or on an error.
func (c *KeyCursor) SeekGE(k model.Key) bool {
	if c.err != nil || c.begin == c.end {
		return false
	}
	// Most keys that are sought in order lie in the open page.
	i := c.dir.count
	if c.reaches(k) {
		i = c.seekInPage(k)
	}
	if i == c.dir.count && c.err == nil {
		var e *file.Entry
		if e, c.err = c.pageOf(k); c.err != nil {
			return false
		}
		if c.err = c.load(e.Rank0); c.err != nil {
			return false
		}
		i = c.seekInPage(k)
	}
	c.next = c.dir.rank0 + uint32(i)
	return c.Next()
}

// Find moves to a key, and reports whether the tenant has it. Keys must ascend from call to call. After false
// there is no current key.
func (c *KeyCursor) Find(k model.Key) bool {
	if c.err != nil || c.begin == c.end {
		return false
	}
	d := &c.dir
	own := c.ownsPage()
	if own {
		if i, known := d.near(k); known {
			if i >= 0 {
				c.next = d.rank0 + uint32(i) + 1
			}
			return i >= 0
		}
	}
	if (!own || d.beyond(0, k) && d.rank0 > c.begin) && !c.turnTo(k) {
		return false
	}
	for {
		i, group, err := d.find(k)
		if err != nil {
			c.err = c.locate(err)
			return false
		}
		if i >= 0 {
			c.next = d.rank0 + uint32(i) + 1
			return true
		}
		// After the last restart, the next page may have the key.
		if (group+1)*restartRanks < d.count || d.rank0+uint32(d.count) == c.end || !c.turnTo(k) {
			return false
		}
	}
}

// turnTo opens the page in which a key would be, and reports whether that is another page than before. It
// compares addresses, because the ranks in an index may be forged.
func (c *KeyCursor) turnTo(k model.Key) bool {
	e, err := c.pageOf(k)
	if c.err = err; err != nil || c.ownsPage() && e.Addr.Off == c.off {
		return false
	}
	if c.err = c.loadPage(e); c.err == nil && !c.ownsPage() {
		c.err = c.locate(column.Corrupt("page of keys is of more than one tenant"))
	}
	return c.err == nil
}

// ownsPage reports whether the open page is one of the tenant's.
func (c *KeyCursor) ownsPage() bool {
	d := &c.dir
	return d.count > 0 && d.rank0 >= c.begin && uint64(d.rank0)+uint64(d.count) <= uint64(c.end)
}

// reaches reports whether the open page is one of the tenant's and begins no later than a key.
func (c *KeyCursor) reaches(k model.Key) bool { return c.ownsPage() && !c.dir.beyond(0, k) }

// seekInPage returns the index in the open page of the first key that is not less than k.
func (c *KeyCursor) seekInPage(k model.Key) int {
	i, err := c.dir.seek(k)
	if err != nil {
		c.err = c.locate(err)
	}
	return i
}

// pageOf returns the tenant's page that has the first key that is not less than k, or ends right before it.
func (c *KeyCursor) pageOf(k model.Key) (*file.Entry, error) {
	// A page is beyond if it begins with a greater key, or belongs to a later tenant. Index pages and pages
	// that begin before the tenant are never beyond.
	beyond := func(e *file.Entry) bool {
		return e.Rank0 >= c.end || e.Rank0 > c.begin && k.Less(e.Key)
	}
	e, err := c.Pages.Last(beyond)
	switch {
	case err != nil:
		return nil, err
	case e == nil || beyond(e):
		return nil, column.Corrupt("no page of keys covers rank %d", c.begin)
	case e.Last() < c.begin:
		// The tenant begins with the next page.
		return c.Pages.Cover(c.begin)
	}
	return e, nil
}

// Key returns the key at the cursor.
func (c *KeyCursor) Key() model.Key { return c.dir.key(int(c.next - 1 - c.dir.rank0)) }

// Rank returns the rank of the key at the cursor.
func (c *KeyCursor) Rank() uint32 { return c.next - 1 }

// Err returns the error that ended the walk, if any.
func (c *KeyCursor) Err() error { return c.err }
