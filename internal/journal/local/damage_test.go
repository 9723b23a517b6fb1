package local

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// replayCovered opens a journal whose records up to covered are in parts, and replays the others.
func replayCovered(fs vfs.FS, covered uint64, log *bytes.Buffer) (recs []string, err error) {
	o := options(fs)
	o.Covered = covered
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	j, err := Open(o)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	err = j.Replay(context.Background(), covered+1, func(_ uint64, b *model.Batch) error {
		recs = append(recs, encode(b))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return recs, j.Start(covered + 1)
}

// TestCoveredDamage changes each byte of a segment in the middle and of the newest one. Damage of covered
// records is logged and loses nothing; damage of others is an error, except for the very last record.
func TestCoveredDamage(t *testing.T) {
	racetest.SkipSerial(t)
	fs, names, n := filled(t)
	_, all := replayed(t, fs, 1)
	newest := len(names) - 1
	for _, which := range []int{1, newest} {
		name := names[which]
		segs, err := folder{fs: fs, path: "data/journal"}.list()
		if err != nil {
			t.Fatal(err)
		}
		first, last := segs[which].first, segs[which].last
		if which == newest {
			last = uint64(n)
		}
		for _, covered := range []uint64{first, last - 1, last, uint64(n)} {
			started := 0
			size := 0
			edit(t, fs, name, func(b []byte) []byte { size = len(b); return b })
			for i := 0; i < size; i += 3 {
				damaged := fs.CrashClone(vfs.CrashCloneCfg{})
				edit(t, damaged, name, func(b []byte) []byte { b[i] ^= 0x40; return b })
				var log bytes.Buffer
				recs, err := replayCovered(damaged, covered, &log)
				if err != nil {
					if !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), name) {
						t.Fatalf("byte %d, %d covered: %v", i, covered, err)
					}
					if covered >= last && which != newest {
						t.Fatalf("byte %d: all records are covered: %v", i, err)
					}
					continue
				}
				started++
				want := all[covered:]
				if slices.Equal(recs, want) {
					continue
				}
				torn := which == newest && len(want) > 0 && slices.Equal(recs, want[:len(want)-1])
				if !torn || !strings.Contains(log.String(), "dropping the torn end") {
					t.Fatalf("byte %d, %d covered: %d records instead of %d\n%s", i, covered, len(recs), len(want), log.String())
				}
			}
			if started == 0 {
				t.Errorf("%s, %d covered: never started", name, covered)
			}
		}
	}
}

// TestCoveredDamageIsReported: the log names file, offset, records and the reason why nothing is lost.
func TestCoveredDamageIsReported(t *testing.T) {
	fs, names, _ := filled(t)
	name := names[len(names)-1]
	edit(t, fs, name, func(b []byte) []byte { b[segmentHeader+frameHeader+3] ^= 1; return b })
	var log bytes.Buffer
	if _, err := replayCovered(fs, 39, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"level=WARN", "nothing is lost", "file=" + name, "offset=44", "parts_cover=39", "wrong checksum of the record"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is not once in %s", want, log.String())
		}
	}
}

// TestCheckTellsTheEnd: the check does not call a journal in order whose last record is damaged.
func TestCheckTellsTheEnd(t *testing.T) {
	fs, names, _ := filled(t)
	ctx := context.Background()
	if err := Check(ctx, fs, "data/journal"); err != nil {
		t.Fatal(err)
	}
	name := names[len(names)-1]
	edit(t, fs, name, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	err := Check(ctx, fs, "data/journal")
	if !errors.Is(err, ErrTorn) || !errors.Is(err, model.ErrCorrupt) {
		t.Fatal(err)
	}
	for _, want := range []string{name, "hold no valid record after record 39", "may have been acknowledged"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}
