package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestVersions: a process that is told to write an earlier version writes no record that programs of that
// version refuse, and each version goes on where the one before has ended.
func TestVersions(t *testing.T) {
	r := newRig(t, 1)
	r.log.leader = 6
	// The newest commit record that programs of each version read.
	newest := map[int]int{topics.VersionRows: 2, topics.VersionDeletions: 2, topics.VersionLeaders: 5, topics.VersionRollups: 5}
	at := time.Now().Add(-5 * time.Minute).UnixNano()
	want := worldtest.Content{}
	for v := topics.VersionRows; v <= topics.Newest; v++ {
		c := r.catalog()
		o := r.options(c, 0)
		o.Version = v
		p := r.open(o)
		stop := r.running(p)
		b := sample("t", 0, 1, at, float64(v))
		end := r.log.append(0, b, true) + 1
		want.Push(b)
		r.waitFor("a ship", func() bool { return p.Shipped() == end })
		if err := errors.Join(stop(), p.Close()); err != nil {
			t.Fatal(err)
		}
		written := 0
		err := r.bucket.List(t.Context(), "catalog/ship-", func(name string, _ int64) error {
			data, err := r.bucket.Get(t.Context(), name)
			if err != nil {
				return err
			}
			var record struct{ Version int }
			if err := json.NewDecoder(bytes.NewReader(data[bytes.IndexByte(data, '{'):])).Decode(&record); err != nil {
				return err
			}
			written = max(written, record.Version)
			return nil
		})
		if err != nil || written != newest[v] {
			t.Errorf("journal-version %d: the newest record has version %d, expected %d; %v", v, written, newest[v], err)
		}
		if d := want.Diff(r.content(r.catalog())); d != "" {
			t.Errorf("journal-version %d: %s", v, d)
		}
		err = topics.NeedVersion(v, topics.VersionLeaders, "x")
		if refused := err != nil; refused != (v < topics.VersionLeaders) || refused && !strings.Contains(err.Error(), "journal-version 3") {
			t.Errorf("journal-version %d: %v", v, err)
		}
	}
}
