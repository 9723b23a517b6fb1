package head

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

// described returns what a head tells of a tenant, and checks the order.
func (r *rig) described(tenant, family string) map[string]model.Metadata {
	r.t.Helper()
	got, last := make(map[string]model.Metadata), ""
	r.head.Metadata(tenant, family, func(family string, m model.Metadata) bool {
		if family <= last {
			r.t.Errorf("%q after %q", family, last)
		}
		last, got[family] = family, m
		return true
	})
	return got
}

func TestMetadata(t *testing.T) {
	r := newRig(t, nil)
	want := make(map[string]model.Metadata)
	for i := range 50 {
		family, m := fmt.Sprintf("family_%d", i), model.Metadata{Type: "counter", Help: fmt.Sprint("Help ", i, " \"ü\n"), Unit: "s"}
		r.must(r.head.PutMetadata("a", family, m))
		want[family] = m
	}
	r.must(r.head.PutMetadata("b", "family_1", model.Metadata{Type: "gauge"}))
	want["family_3"] = model.Metadata{Type: "gauge", Help: "better"}
	r.must(r.head.PutMetadata("a", "family_3", want["family_3"]))
	check := func(when string) {
		t.Helper()
		if got := r.described("a", ""); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		if got := r.described("b", ""); len(got) != 1 || got["family_1"].Type != "gauge" {
			t.Errorf("%s: %v", when, got)
		}
		if got := r.described("a", "family_7"); len(got) != 1 || got["family_7"] != want["family_7"] {
			t.Errorf("%s: %v", when, got)
		}
		if len(r.described("a", "family_99")) > 0 || len(r.described("c", "")) > 0 {
			t.Errorf("%s: there is more than was told", when)
		}
	}
	check("told")
	r.must(r.head.Flush(context.Background()))
	r.crash()
	check("after a flush and a crash")
	want["family_4"] = model.Metadata{Help: "of the last minute"}
	r.must(r.head.PutMetadata("a", "family_4", want["family_4"]))
	r.restart()
	check("after a restart")
	n := 0
	r.head.Metadata("a", "", func(string, model.Metadata) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("emit was called %d times after it had said no", n)
	}
	if families, bytes := r.metric("shale_head_metadata_families"), r.metric("shale_head_metadata_bytes"); families != 51 || bytes < 51*metadata.EntryBytes {
		t.Errorf("%v families and %v bytes", families, bytes)
	}
}

func TestMetadataLimits(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Metadata.Families, o.Metadata.TenantBytes, o.Metadata.Bytes = 10, 4000, 6000 })
	put := func(tenant, family string, help int) string {
		err := r.head.PutMetadata(tenant, family, model.Metadata{Help: strings.Repeat("h", help)})
		var limit *model.LimitError
		switch {
		case err == nil:
			return ""
		case errors.As(err, &limit):
			return limit.Limit
		}
		return err.Error()
	}
	for i := range 10 {
		if got := put("a", fmt.Sprint(i), 0); got != "" {
			t.Fatal(got)
		}
	}
	if got := put("a", "11", 0); got != "limits.metadata-families" {
		t.Error(got)
	}
	if got := put("a", "3", 2000); got != "" { // a known family is not one more
		t.Error(got)
	}
	if got := put("a", "3", 4000); got != "limits.metadata-tenant-bytes" {
		t.Error(got)
	}
	if got := put("b", "1", 1000); got != "" {
		t.Error(got)
	}
	if got := put("b", "2", 1500); got != "limits.metadata-bytes" {
		t.Error(got)
	}
	if got := put("b", "2", metadata.MaxTextBytes); !strings.Contains(got, "bytes") {
		t.Error(got)
	}
	if got := r.metric("shale_head_refused_metadata_total"); got != 4 {
		t.Errorf("%v refusals", got)
	}
	// What is still told stays; what is not makes room after a while.
	r.now += int64(metadata.IdleAfter) - int64(time.Minute)
	put("a", "5", 0)
	r.now += int64(2 * time.Minute)
	if got := put("a", "11", 0); got != "" {
		t.Error(got)
	}
	if got := r.described("a", ""); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// TestMetadataDamaged: a damaged or missing file is replaced by its copy. Without a copy the head starts with
// no metadata, and says so in the log and in a note.
func TestMetadataDamaged(t *testing.T) {
	remove := func(t *testing.T, mem *vfs.MemFS, file string) {
		t.Helper()
		if err := mem.Remove("/head/" + file); err != nil {
			t.Fatal(err)
		}
	}
	flipAt := func(t *testing.T, mem *vfs.MemFS, file string) { flip(t, mem, "/head/"+file, 30) }
	empty := func(t *testing.T, mem *vfs.MemFS, file string) { writeFile(t, mem, "/head/"+file, nil) }
	const file, twin = metadata.FileName, metadata.FileName + local.CopySuffix
	for name, c := range map[string]struct {
		damage func(t *testing.T, mem *vfs.MemFS, file string)
		files  []string
		lost   bool
	}{
		"flipped": {flipAt, []string{file}, false}, "gone": {remove, []string{file}, false}, "empty": {empty, []string{file}, false},
		"the copy flipped": {flipAt, []string{twin}, false}, "the copy gone": {remove, []string{twin}, false},
		"both flipped": {flipAt, []string{file, twin}, true}, "both gone": {remove, []string{file, twin}, true}, "both empty": {empty, []string{file, twin}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.must(r.head.PutMetadata("a", "f", model.Metadata{Type: "gauge"}))
			r.must(r.head.Close())
			for _, f := range c.files {
				c.damage(t, r.mem, f)
			}
			if err := Check(context.Background(), r.mem, "/head"); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), c.files[0]) {
				t.Errorf("check: %v", err)
			}
			r.open()
			if got := len(r.described("a", "")); got != 1 && !c.lost || got != 0 && c.lost {
				t.Errorf("%d families", got)
			}
			log := r.log.String()
			if !strings.Contains(log, metadata.FileName) || strings.Contains(log, "collected again") != c.lost {
				t.Errorf("the log says %q", log)
			}
			notes, err := repair.Notes(r.mem, "/")
			r.must(err)
			if c.lost && (len(notes) != 1 || notes[0].Lost.What != repair.Metadata || notes[0].From != "head/METADATA") || !c.lost && len(notes) > 0 && notes[0].Lost != nil {
				t.Errorf("notes: %+v", notes)
			}
			r.must(Check(context.Background(), r.mem, "/head"))
			r.must(r.head.PutMetadata("a", "f", model.Metadata{Type: "counter"}))
		})
	}
}

// TestMetadataNeverWritten: a folder of a version that wrote METADATA with the first metadata only, and wrote
// no copies, may have none. Nothing is lost then.
func TestMetadataNeverWritten(t *testing.T) {
	r := newRig(t, nil)
	r.push("a", 0, 10, r.now, 1)
	r.must(r.head.Close())
	for _, name := range []string{metadata.FileName, metadata.FileName + local.CopySuffix, local.ManifestName + local.CopySuffix} {
		r.must(r.mem.Remove("/head/" + name))
	}
	r.open()
	if log := r.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the log says %q", log)
	}
	if notes, err := repair.Notes(r.mem, "/"); err != nil || len(notes) > 0 {
		t.Errorf("notes: %+v, %v", notes, err)
	}
	r.must(Check(context.Background(), r.mem, "/head"))
}

// TestOlderManifestCopy: a crash between two renames leaves a copy of the manifest that is one version older.
// The next start brings it up to date.
func TestOlderManifestCopy(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, nil)
	r.push("a", 0, 10, r.now, 1)
	r.must(r.head.Flush(ctx))
	const file, twin = "/head/" + local.ManifestName, "/head/" + local.ManifestName + local.CopySuffix
	older := readFile(t, r.mem, twin)
	r.push("a", 0, 10, r.now-1, 2)
	r.must(r.head.Flush(ctx))
	r.must(r.head.Close())
	writeFile(t, r.mem, twin, older)
	if err := Check(ctx, r.mem, "/head"); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), twin) {
		t.Errorf("check: %v", err)
	}
	if steps, _, err := Repairs(ctx, r.mem, "/", "head"); err != nil || len(steps) != 1 {
		t.Errorf("repairs: %+v, %v", steps, err)
	}
	r.open()
	if !bytes.Equal(readFile(t, r.mem, file), readFile(t, r.mem, twin)) {
		t.Error("the copy is still older")
	}
	r.must(Check(ctx, r.mem, "/head"))
}

// TestOlderMetadata: an older copy of METADATA alone gives way to METADATA.copy, which is newer.
func TestOlderMetadata(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.head.PutMetadata("a", "f", model.Metadata{Type: "gauge"}))
	r.must(r.head.Close())
	const file = "/head/" + metadata.FileName
	older := readFile(t, r.mem, file)
	r.open()
	r.must(r.head.PutMetadata("a", "g", model.Metadata{Type: "gauge"}))
	r.must(r.head.Close())
	writeFile(t, r.mem, file, older)
	if err := Check(context.Background(), r.mem, "/head"); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), file) {
		t.Errorf("check: %v", err)
	}
	r.open()
	if got := r.described("a", ""); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if log := r.log.String(); !strings.Contains(log, "using its copy") {
		t.Errorf("the log says %q", log)
	}
	r.must(Check(context.Background(), r.mem, "/head"))
}

// TestManifestDamaged: a damaged or missing manifest is replaced by its copy, and nothing is lost. Without a
// copy the head does not open, and deletes nothing.
func TestManifestDamaged(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, nil)
	r.push("a", 0, 10, r.now, 1)
	r.must(r.head.Flush(ctx))
	r.push("a", 0, 10, r.now-1, 2)
	r.must(r.head.Flush(ctx))
	r.must(r.head.Close())
	r.head = nil
	whole := r.mem
	const file, twin = "/head/" + local.ManifestName, "/head/" + local.ManifestName + local.CopySuffix
	for _, damaged := range [][]string{{file}, {twin}, {file, twin}} {
		for _, gone := range []bool{false, true} {
			r.mem = whole.CrashClone(vfs.CrashCloneCfg{})
			r.o.FS, r.bucket.fs = r.mem, r.mem
			for _, f := range damaged {
				if gone {
					r.must(r.mem.Remove(f))
				} else {
					flip(t, r.mem, f, 40)
				}
			}
			if err := Check(ctx, r.mem, "/head"); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), local.ManifestName) {
				t.Errorf("%v: the check says %v", damaged, err)
			}
			before, err := r.mem.List("/head")
			r.must(err)
			if len(damaged) > 1 {
				r.o.Registerer = nil
				if _, err := Open(ctx, r.o); !errors.Is(err, model.ErrCorrupt) || !strings.Contains(err.Error(), local.ManifestName) {
					t.Errorf("without both: %v", err)
				}
				if after, err := r.mem.List("/head"); err != nil || len(after) != len(before) {
					t.Errorf("files have gone: %v, then %v, %v", before, after, err)
				}
				continue
			}
			r.open()
			r.expect("a", 0, 10, map[int64]float64{r.now: 1, r.now - 1: 2})
			if log := r.log.String(); !strings.Contains(log, local.ManifestName) {
				t.Errorf("the log says %q", log)
			}
			r.must(Check(ctx, r.mem, "/head"))
			r.must(r.head.Close())
			r.head = nil
		}
	}
}

// TestOlderManifest: files that an older manifest does not name stay until the journal has been replayed, and
// new files get other names.
func TestOlderManifest(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, nil)
	r.push("a", 0, 10, r.now, 1)
	r.must(r.head.Flush(ctx))
	older := readFile(t, r.mem, "/head/"+local.ManifestName)
	r.push("a", 0, 10, r.now-1, 2)
	r.must(r.head.Flush(ctx))
	names, err := r.mem.List("/head")
	r.must(err)
	r.must(r.head.Close())
	writeFile(t, r.mem, "/head/"+local.ManifestName, older)
	if m, damaged, err := local.ReadManifest(r.mem, "/head"); err != nil || damaged == nil || len(m.Parts) != 3 {
		t.Errorf("the newer copy is not used: %+v, %v, %v", m, damaged, err)
	}
	writeFile(t, r.mem, "/head/"+local.ManifestName+local.CopySuffix, older)
	r.o.Registerer = nil
	h, err := Open(ctx, r.o)
	r.must(err)
	if after, err := r.mem.List("/head"); err != nil || len(after) < len(names) {
		t.Errorf("files have gone: %v, then %v, %v", names, after, err)
	}
	if next := h.nextFile(local.PartSuffix); slices.Contains(names, next) {
		t.Errorf("%s is the name of a leftover", next)
	}
	h.RemoveLeftovers()
	if after, err := r.mem.List("/head"); err != nil || len(after) >= len(names) {
		t.Errorf("leftovers stay: %v, then %v, %v", names, after, err)
	}
	r.head = h
}

// Senders that disagree do not have the file written with every flush.
func TestMetadataIsWrittenSeldom(t *testing.T) {
	writes := 0
	r := newRig(t, func(o *Options) {
		o.FS = createHook(o.FS, func(name string) {
			if strings.HasSuffix(name, metadata.FileName+".tmp") {
				writes++
			}
		})
	})
	for i := range 120 {
		r.must(r.head.PutMetadata("a", "f", model.Metadata{Help: fmt.Sprint(i % 2)}))
		r.push("a", 0, 3, r.now, float64(i))
		r.must(r.head.Flush(context.Background()))
		r.now += int64(time.Second)
	}
	if writes < 2 || writes > 3 {
		t.Errorf("%d writes in two minutes", writes)
	}
	r.now -= int64(5 * time.Hour) // a clock that was set back does not hold it up
	r.must(r.head.PutMetadata("a", "f", model.Metadata{Help: "new"}))
	before := writes
	r.must(r.head.Flush(context.Background()))
	if writes != before+1 {
		t.Error("the clock held up the file")
	}
}

// flip changes a bit of a file.
func flip(t testing.TB, fs vfs.FS, name string, at int) {
	t.Helper()
	data := readFile(t, fs, name)
	data[at] ^= 0x10
	writeFile(t, fs, name, data)
}

// A sender that knows type and unit only, such as a Prometheus that sends them as labels, leaves the help of
// others alone.
func TestMetadataKeepsHelp(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.head.PutMetadata("a", "requests", model.Metadata{Type: "counter", Help: "All requests."}))
	r.must(r.head.PutMetadata("a", "requests", model.Metadata{Type: "counter", Unit: "requests"}))
	want := model.Metadata{Type: "counter", Help: "All requests.", Unit: "requests"}
	if got := r.described("a", "requests"); got["requests"] != want {
		t.Errorf("%v, want %v", got, want)
	}
	r.must(r.head.PutMetadata("a", "requests", model.Metadata{Type: "counter", Help: "Requests."}))
	if got := r.described("a", "requests"); got["requests"] != (model.Metadata{Type: "counter", Help: "Requests."}) {
		t.Errorf("%v", got)
	}
}
