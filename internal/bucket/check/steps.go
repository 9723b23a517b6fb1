package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
)

// wrong is an error about what a store does.
func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{model.ErrInvalid}, args...)...)
}

func (c *check) write(ctx context.Context, suffix, data string) error {
	return c.b.Put(ctx, c.base+suffix, bytes.NewReader([]byte(data)), int64(len(data)))
}

// has verifies the content of an object.
func (c *check) has(ctx context.Context, suffix, data string) error {
	got, err := c.b.Get(ctx, c.base+suffix)
	if err != nil {
		return err
	}
	if string(got) != data {
		return wrong("an object of %d bytes came back as %d other bytes: %.40q", len(data), len(got), got)
	}
	return nil
}

const (
	small = "\x00shale\xff" // 7 bytes, not text
	odd   = "-=+._"         // the characters that URLs escape, and some do wrongly
)

func (c *check) put(ctx context.Context) error {
	if err := c.write(ctx, "-small", small); err != nil {
		return err
	}
	return c.write(ctx, odd, "")
}

func (c *check) get(ctx context.Context) error {
	if err := c.has(ctx, "-small", small); err != nil {
		return err
	}
	return c.has(ctx, odd, "")
}

func (c *check) ranges(ctx context.Context) error {
	for _, r := range [][2]int64{{0, 7}, {0, 1}, {1, 3}, {6, 1}} {
		got, err := c.b.GetRange(ctx, c.base+"-small", r[0], r[1])
		if err != nil {
			return err
		}
		if want := small[r[0] : r[0]+r[1]]; string(got) != want {
			return wrong("%d bytes from %d came back as %q instead of %q", r[1], r[0], got, want)
		}
	}
	got, err := c.b.GetRange(ctx, c.base+"-small", 5, 4)
	if err == nil {
		return wrong("4 bytes from 5 of an object of 7 bytes came back as %q instead of an error", got)
	}
	if !errors.Is(err, model.ErrInvalid) {
		return err
	}
	return nil
}

func (c *check) list(ctx context.Context) error {
	want := map[string]int64{c.base + "-small": int64(len(small)), c.base + odd: 0}
	err := c.b.List(ctx, c.base, func(name string, size int64) error {
		known, ok := want[name]
		if !ok || known != size {
			return wrong("the list of %s has %s with %d bytes, which is not there", c.base, name, size)
		}
		delete(want, name)
		return nil
	})
	if err != nil {
		return err
	}
	for name := range want {
		return wrong("the list of %s lacks %s, which was put before: the store lists late", c.base, name)
	}
	return nil
}

func (c *check) create(ctx context.Context) error {
	for i, data := range []string{"first", "second"} {
		created, err := c.b.PutIfAbsent(ctx, c.base+"-once", []byte(data))
		if err != nil {
			return err
		}
		if created != (i == 0) {
			return wrong("attempt %d to create an object returned created=%t: the store ignores If-None-Match, or its like", i+1, created)
		}
		if err := c.has(ctx, "-once", "first"); err != nil {
			return err
		}
	}
	return nil
}

// race creates an object many times at once: some stores check the condition before they have the content.
func (c *check) race(ctx context.Context) error {
	const racers = 8
	var wg sync.WaitGroup
	var won [racers]bool
	var errs [racers]error
	for i := range racers {
		wg.Go(func() {
			won[i], errs[i] = c.b.PutIfAbsent(ctx, c.base+"-race", []byte{byte(i)})
			// A store may refuse to decide between two attempts, and ask to repeat one.
			for tries := 0; tries < 5 && errors.Is(errs[i], model.ErrTransient); tries++ {
				won[i], errs[i] = c.b.PutIfAbsent(ctx, c.base+"-race", []byte{byte(i)})
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	winners, winner := 0, 0
	for i, w := range won {
		if w {
			winners, winner = winners+1, i
		}
	}
	if winners != 1 {
		return wrong("%d of %d concurrent attempts to create an object were told that they did", winners, racers)
	}
	return c.has(ctx, "-race", string([]byte{byte(winner)}))
}

func (c *check) overwrite(ctx context.Context) error {
	for _, data := range []string{"a longer version", "short"} {
		if err := c.write(ctx, "-small", data); err != nil {
			return err
		}
		if err := c.has(ctx, "-small", data); err != nil {
			return err
		}
	}
	return nil
}

// largeBytes is more than any store takes in one part.
const largeBytes = 17<<20 + 13

// pattern is a reader of bytes that depend on their position.
type pattern struct{ off int64 }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byteAt(p.off + int64(i))
	}
	p.off += int64(len(b))
	return len(b), nil
}

func byteAt(off int64) byte { return byte(uint64(off) * 0x9e3779b97f4a7c15 >> 32) }

func (c *check) large(ctx context.Context) error {
	name := c.base + "-large"
	if err := c.b.Put(ctx, name, io.LimitReader(&pattern{}, largeBytes), largeBytes); err != nil {
		return err
	}
	const piece = 1 << 20
	for off := int64(0); off < largeBytes; off += piece {
		n := min(piece, largeBytes-off)
		got, err := c.b.GetRange(ctx, name, off, n)
		if err != nil {
			return err
		}
		for i, x := range got {
			if x != byteAt(off+int64(i)) {
				return wrong("an object of %d bytes came back with another byte at %d: the store puts parts together wrongly", largeBytes, off+int64(i))
			}
		}
	}
	return nil
}

func (c *check) remove(ctx context.Context) error {
	// One twice: a missing object is not an error.
	for _, suffix := range []string{"-small", odd, "-once", "-small"} {
		if err := c.b.Delete(ctx, c.base+suffix); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) missing(ctx context.Context) error {
	for _, suffix := range []string{"-small", "-never"} {
		got, err := c.b.Get(ctx, c.base+suffix)
		if err == nil {
			return wrong("an object that is not there came back with %d bytes", len(got))
		}
		if !errors.Is(err, bucket.ErrNotFound) {
			return err
		}
	}
	return c.b.List(ctx, c.base+"-small", func(name string, _ int64) error {
		return wrong("the list has %s, which was deleted before: the store lists late", name)
	})
}
