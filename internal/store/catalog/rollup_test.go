package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog/checksum"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// rollupOf returns rollups of a block.
func rollupOf(base *Block, id string) Block {
	r := *base
	r.ID, r.Resolution, r.Base, r.Policies, r.Tenants = id, int64(time.Hour), base.ID, "p", slices.Clone(base.Tenants)
	return r
}

// states shows the blocks, the rollups that count, those that are alone, and the dead ones.
func states(c *Catalog) string {
	s := c.State()
	var with, alone []string
	for _, b := range s.Rollups {
		if b.Alone {
			alone = append(alone, b.ID)
		} else {
			with = append(with, b.ID)
		}
	}
	return fmt.Sprintf("%v %v %v %v", ids(s.Blocks), with, alone, ids(s.Dead))
}

// TestRollupStates: rollups count as long as their base does, or alone if retention has hidden it, and never
// besides what a merge has made of it, in any order of commits, for this process and for one that opens
// later.
func TestRollupStates(t *testing.T) {
	ctx := context.Background()
	open := func() (*Catalog, func() *Catalog) {
		b, err := bucketfs.New(vfs.NewMem(), "/b")
		must(t, err)
		again := func() *Catalog {
			c, err := Open(ctx, b, Options{})
			must(t, err)
			return c
		}
		c := again()
		base := merged("base", 1, 2)
		late := merged("late", 3, 4)
		must(t, c.Replace(ctx, nil, []Block{base}))
		must(t, c.Replace(ctx, nil, []Block{late}))
		must(t, c.AddRollups(ctx, "base", nil, []Block{rollupOf(&base, "r1")}))
		return c, again
	}
	check := func(c *Catalog, again func() *Catalog, want string) {
		t.Helper()
		must(t, c.Refresh(ctx))
		if got, fresh := states(c), states(again()); got != want || fresh != want {
			t.Errorf("%s, opened again %s, want %s", got, fresh, want)
		}
	}
	expire := func(c *Catalog) error {
		return c.expire(ctx, func(b *Block) bool { return b.ID == "base" })
	}
	joined := merged("joined", 1, 4)

	c, again := open()
	check(c, again, "[base late] [r1] [] []")
	stale := again()
	must(t, c.Replace(ctx, []string{"base", "late"}, []Block{joined}))
	check(c, again, "[joined] [] [] [r1]")
	must(t, c.AddRollups(ctx, "", []string{"r1"}, nil))
	check(c, again, "[joined] [] [] []")
	// A process that has not seen the merge lets the base expire: the merge wins.
	must(t, expire(stale))
	check(c, again, "[joined] [] [] []")

	c, again = open()
	stale = again()
	must(t, expire(c))
	check(c, again, "[late] [] [r1] []")
	must(t, stale.Replace(ctx, []string{"base", "late"}, []Block{joined}))
	check(c, again, "[joined] [] [] [r1]")

	c, again = open()
	must(t, expire(c))
	other := merged("base", 1, 2)
	if err := c.AddRollups(ctx, "base", nil, []Block{rollupOf(&other, "r2")}); !errors.Is(err, ErrReplaced) {
		t.Errorf("rollups of a block that is gone: %v", err)
	}
	must(t, c.RewriteAlone(ctx, "r1", []Block{rollupOf(&other, "r3")}))
	check(c, again, "[late] [] [r3] []")
	// The records that say so stay as long as the rollups.
	for range 3 {
		_, err := c.Collect(ctx, CollectOptions{Grace: time.Nanosecond})
		must(t, err)
	}
	check(c, again, "[late] [] [r3] []")
	must(t, c.expire(ctx, func(b *Block) bool { return b.Alone }))
	check(c, again, "[late] [] [] []")
	for range 3 {
		_, err := c.Collect(ctx, CollectOptions{Grace: time.Nanosecond})
		must(t, err)
	}
	if n := len(c.records); n != 1 {
		t.Errorf("%d records are left", n)
	}
}

// TestRecordsOfRollupsHaveTheirVersion: a program that does not know rollups refuses them.
func TestRecordsOfRollupsHaveTheirVersion(t *testing.T) {
	for name, r := range goldens() {
		data, err := r.encode()
		must(t, err)
		var into record
		err = checksum.Parse("x", data, recordVersion, &into)
		if refused := errors.Is(err, model.ErrInvalid); refused != (name == "rollups" || name == "alone" || name == "unrolled") {
			t.Errorf("%s: %v", name, err)
		}
		body, err := checksum.Unseal(data)
		must(t, err)
		other := strings.NewReplacer(`"version": 2`, `"version": 3`, `"version": 3`, `"version": 4`, `"version": 4`, `"version": 2`).Replace(string(body))
		if _, err := parseRecord(recordName(r.id), checksum.Seal([]byte(other))); err == nil {
			t.Errorf("%s is read with the other version", name)
		}
	}
}

// TestUnrolled: what is noted of a block is known to a process that opens later, until the block is gone, and
// its record goes then.
func TestUnrolled(t *testing.T) {
	ctx := context.Background()
	b, err := bucketfs.New(vfs.NewMem(), "/b")
	must(t, err)
	now := int64(1)
	open := func() *Catalog {
		c, err := Open(ctx, b, Options{Now: func() int64 { return now }})
		must(t, err)
		return c
	}
	c := open()
	must(t, c.Replace(ctx, nil, []Block{merged("m1", 1, 2)}))
	must(t, c.Replace(ctx, nil, []Block{merged("m2", 3, 4)}))
	m1, m2 := UnrolledBlock{"m1", "p"}, UnrolledBlock{"m2", "p"}
	for range 2 { // the second time changes nothing
		must(t, c.MarkUnrolled(ctx, []UnrolledBlock{m1, m2, {"gone", "p"}}))
	}
	if n := len(c.records); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	for _, x := range []*Catalog{c, open()} {
		if u := x.State().Unrolled; len(u) != 2 || !u[m1] || !u[m2] {
			t.Errorf("%v", u)
		}
	}
	must(t, c.Replace(ctx, []string{"m1"}, []Block{merged("m3", 1, 2)}))
	collect := func() {
		t.Helper()
		now += int64(time.Hour)
		for range 3 {
			_, err := c.Collect(ctx, CollectOptions{Grace: time.Minute})
			must(t, err)
		}
	}
	collect()
	for _, x := range []*Catalog{c, open()} {
		if u := x.State().Unrolled; len(u) != 1 || !u[m2] {
			t.Errorf("after m1 is gone: %v", u)
		}
	}
	must(t, c.Replace(ctx, []string{"m2", "m3"}, []Block{merged("m4", 1, 4)}))
	collect()
	if n := len(c.records); n != 1 {
		t.Errorf("%d records are left, want that of m4", n)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
