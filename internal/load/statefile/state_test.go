package statefile

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

func testHeader() Header {
	f := testFleetState()
	return Header{Timeline: pace.Timeline{Start: 1e18, Step: 1e9}, RemoteWrite: &f, Batch: 50}
}

func TestStateFile(t *testing.T) {
	fs := vfs.NewMem()
	w, err := Create(fs, "s", testHeader())
	if err != nil {
		t.Fatal(err)
	}
	w.Append(RecordAck, 0, 7)
	w.Append(RecordFail, 3, 2)
	w.Append(RecordAck, 3, 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(fs, "s", testHeader()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("overwrites: %v", err)
	}
	s, err := Load(fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	if s.Ended || s.Acks.Rounds() != 4 || !s.Acks.Acked(0, 7) || !s.Acks.Acked(3, 2) || !s.Acks.Tried(3, 2) || s.Acks.Acked(1, 7) || s.Acks.Tried(0, 7) {
		t.Errorf("%+v", s)
	}
	if _, err := Load(fs, "none"); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("no file: %v", err)
	}
	var none *Writer
	none.Append(RecordAck, 0, 0)
	if none.Close() != nil {
		t.Error("a state that is not kept has an error")
	}
}

// TestStateDamage cuts a file at every byte and flips every byte of its records.
func TestStateDamage(t *testing.T) {
	data := stateBytes(t)
	head := bytes.IndexByte(data, '\n') + 1
	for n := head; n <= len(data); n++ {
		s, err := parseState(data[:n])
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if s.Ended != (n == len(data)) {
			t.Errorf("cut at %d: ended %v", n, s.Ended)
		}
	}
	for i := head; i < len(data); i++ {
		bad := bytes.Clone(data)
		bad[i] ^= 4
		if _, err := parseState(bad); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	for _, line := range []string{"", "{}", "x", `{"version":2}`, strings.Replace(string(data[:head]), `"batch":50`, `"batch":0`, 1)} {
		if _, err := parseState([]byte(line)); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("header %q: %v", line, err)
		}
	}
}

func stateBytes(t testing.TB) []byte {
	fs := vfs.NewMem()
	w, err := Create(fs, "s", testHeader())
	if err != nil {
		t.Fatal(err)
	}
	w.Append(RecordAck, 0, 7)
	w.Append(RecordFail, 1, 3)
	w.Append(RecordEnd, 1, 0)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzState(f *testing.F) {
	f.Add(stateBytes(f))
	f.Add([]byte(`{"version":1,"timeline":{"start":0,"step":1},"graphite":{"prefix":"a","agents":1,"metrics":1,"connections":1}}` + "\n"))
	f.Add([]byte(oldState))
	f.Add([]byte(`{"version":2,"timeline":{"start":0,"step":1},"remote_write":{"seed":1,"tenants":2,"scrapers":2,"targets":2,"metrics":3,` +
		`"series":5,"labels":10,"name":"m","value":"histogram","churn":{"series_interval":60000000000,"relabel_jitter":{"how":"uniform","by":5},` +
		`"stale_markers":true},"exemplars":0.5},"batch":4,"disorder":{"late":{"share":0.1,"by":1000},"twice":0.1,"rounds":9}}` + "\n"))
	f.Add([]byte(`{"version":2,"timeline":{"start":0,"step":1},"graphite":{"prefix":"a","agents":1,"metrics":1,"connections":1,` +
		`"protocol":"pickle","spawn":{"interval":5,"jitter":5,"flush":7}}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseState(data)
		if err == nil && (s.Acks == nil) == (s.Graphite == nil) {
			t.Error("a state of neither kind, or of both")
		}
	})
}

// oldState is the first line of a file of version 1.
const oldState = `{"version":1,"timeline":{"start":1700000000000000000,"step":1000000000},"remote_write":` +
	`{"seed":7,"targets":12,"metrics":3,"series":10,"labels":12,"name":"load_metric","value":"gauge"},"batch":50}` + "\n"

// TestStateBounds: a header cannot make its reader take much memory.
func TestStateBounds(t *testing.T) {
	for _, line := range []string{
		strings.Replace(oldState, `"series":10`, `"series":10000000000`, 1),
		`{"version":2,"timeline":{"start":0,"step":1},"graphite":{"prefix":"a","agents":10000000,"metrics":1,"connections":10000000}}`,
		strings.Replace(oldState, `"version":1`, `"version":4`, 1), strings.Replace(oldState, `"step":1000000000`, `"step":0`, 1),
	} {
		if _, err := parseState([]byte(line)); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestLives reads trails, given as "seconds:counter@life" or "seconds:away".
func TestLives(t *testing.T) {
	const s = int64(time.Second)
	at := func(sec float64, n uint64, life float64) Reading {
		return Reading{At: int64(sec * float64(s)), Received: n, Life: life}
	}
	away := func(sec float64) Reading { return Reading{At: int64(sec * float64(s)), Away: true} }
	for name, c := range map[string]struct {
		readings []Reading
		want     lives
	}{
		"none":          {nil, lives{}},
		"never there":   {[]Reading{away(0), away(1)}, lives{deaths: 1}},
		"lived":         {[]Reading{at(0, 5, 1), at(1, 15, 1), at(1.5, 25, 1)}, lives{kept: 20, First: 20}},
		"died":          {[]Reading{at(0, 5, 1), at(1, 15, 1), at(2, 25, 1), away(3)}, lives{kept: 10, First: 10, deaths: 1}},
		"died young":    {[]Reading{at(0, 5, 1), at(0.5, 15, 1), away(1)}, lives{deaths: 1}},
		"came back":     {[]Reading{at(0, 5, 1), at(1, 15, 1), at(2, 25, 1), away(3), at(4, 3, 2), at(5, 9, 2)}, lives{kept: 19, First: 10, deaths: 1}},
		"was quick":     {[]Reading{at(0, 5, 1), at(1, 15, 1), at(2, 25, 1), at(3, 40, 2), at(4, 50, 2)}, lives{kept: 60, First: 10, deaths: 1}},
		"without life":  {[]Reading{at(0, 5, 0), at(1, 15, 0), at(2, 25, 0), at(3, 7, 0)}, lives{kept: 17, First: 10, deaths: 1}},
		"was only slow": {[]Reading{at(0, 5, 1), at(1, 15, 1), away(2), away(3), at(4, 45, 1)}, lives{kept: 40, First: 40}},
		"slow, no life": {[]Reading{at(0, 5, 0), at(1, 15, 0), at(2, 25, 0), away(3), at(4, 45, 0)}, lives{kept: 55, First: 10, deaths: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			trail := Trail{Readings: c.readings}
			if got := trail.Lives(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestOldState: a file of the version before is read as it always was. TestGolden keeps what it says as it
// was.
func TestOldState(t *testing.T) {
	s, err := parseState([]byte(oldState))
	if err != nil {
		t.Fatal(err)
	}
	if f := testFleetState(); *s.RemoteWrite != f || s.Disorder != nil || s.Acks.Batches != 8 {
		t.Errorf("%+v, %d batches", s.RemoteWrite, s.Acks.Batches)
	}
}

func testFleetState() fleet.Fleet {
	return fleet.Fleet{Seed: 7, Targets: 12, Metrics: 3, Series: 10, Labels: 12, Name: "load_metric", Value: values.Gauge}
}
