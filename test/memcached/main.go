package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

func main() {
	if err := session(memcache.New(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func session(c *memcache.Client) error {
	c.Timeout = 20 * time.Second
	large := bytes.Repeat([]byte("v"), 900_000)
	for _, it := range []*memcache.Item{{Key: "go-a", Value: []byte("1"), Flags: 7, Expiration: 1000}, {Key: "go-large", Value: large}, {Key: "go-n", Value: []byte("9")}} {
		if err := c.Set(it); err != nil {
			return err
		}
	}
	found, err := c.GetMulti([]string{"go-a", "go-none", "go-large"})
	if err != nil || len(found) != 2 || found["go-a"].Flags != 7 || !bytes.Equal(found["go-large"].Value, large) {
		return fmt.Errorf("get: %d items, %v", len(found), err)
	}
	if err := c.Add(&memcache.Item{Key: "go-a"}); !errors.Is(err, memcache.ErrNotStored) {
		return fmt.Errorf("add: %v", err)
	}
	if n, err := c.Increment("go-n", 3); n != 12 || err != nil {
		return fmt.Errorf("incr: %d, %v", n, err)
	}
	it, err := c.Get("go-a")
	if err != nil {
		return err
	}
	it.Value = []byte("2")
	if err := c.CompareAndSwap(it); err != nil {
		return fmt.Errorf("cas: %w", err)
	}
	if err := c.CompareAndSwap(it); !errors.Is(err, memcache.ErrCASConflict) {
		return fmt.Errorf("cas again: %v", err)
	}
	if err := errors.Join(c.Append(&memcache.Item{Key: "go-a", Value: []byte("3")}), c.Touch("go-a", 500), c.Delete("go-n"), c.Ping()); err != nil {
		return err
	}
	if it, err := c.GetAndTouch("go-a", 100); err != nil || string(it.Value) != "23" {
		return fmt.Errorf("gat: %+v, %v", it, err)
	}
	if _, err := c.Get("go-n"); !errors.Is(err, memcache.ErrCacheMiss) {
		return fmt.Errorf("after a delete: %v", err)
	}
	// The connection goes on after a value that is too large.
	if err := c.Set(&memcache.Item{Key: "go-a", Value: append(large, large...)}); err == nil {
		return errors.New("a value that is too large was stored")
	}
	if _, err := c.Get("go-a"); !errors.Is(err, memcache.ErrCacheMiss) {
		return fmt.Errorf("after a value that was too large: %v", err)
	}
	return nil
}
