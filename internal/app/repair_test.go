package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
)

// damagedFolder is what a kill leaves of an engine with the samples 1 to 6 of series of their own: 1 and 2 in
// a part each, the others in the journal alone.
func damagedFolder(t *testing.T) *setup {
	t.Helper()
	s := newSetup(t, nil)
	for i := range 6 {
		must(t, s.push("a", model.LabelsOf("__name__", fmt.Sprint("m", i+1)), s.now-int64(6-i)*1e9, float64(i+1)))
		if i < 2 {
			must(t, s.Flush())
		}
	}
	disk := s.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.Close())
	s.mem = disk
	return s
}

// values returns all values of a tenant, sorted, and the warnings.
func (s *setup) values(t *testing.T) (string, []string) {
	t.Helper()
	cost := new(model.Cost)
	set, err := s.Querier().Select(context.Background(), &model.Request{
		Tenant: "a", Signal: model.Metrics, Range: model.TimeRange{Min: s.now - int64(time.Hour), Max: s.now}, Cost: cost,
	})
	must(t, err)
	defer set.Close()
	var out []string
	for set.Next(context.Background()) {
		var rows model.Rows
		must(t, set.AppendRows(context.Background(), &rows))
		for _, v := range rows.Values {
			out = append(out, fmt.Sprint(math.Float64frombits(v)))
		}
	}
	must(t, set.Err())
	slices.Sort(out)
	return strings.Join(out, " "), cost.Warnings.All()
}

// partsOf returns the paths of the local parts of a folder, oldest first: of each flush, the data part and
// then the part with labels.
func partsOf(t *testing.T, fs vfs.FS) (parts []string) {
	for _, f := range filesUnder(t, fs, "/data/head") {
		if strings.HasSuffix(f, ".part") {
			parts = append(parts, f)
		}
	}
	return parts
}

// TestRepair damages a file of each kind, repairs the folder, and starts an engine on it. What is lost is
// told: in the plan, in the log, in a note, and with every result that it concerns.
func TestRepair(t *testing.T) {
	type folder = *vfs.MemFS
	flipEnd := func(file string, back int64) func(*testing.T, folder) {
		return func(t *testing.T, fs folder) { damage(t, fs, file, sizeOf(t, fs, file)-back, false) }
	}
	journal := "/data/journal/00000000000000000001.journal"
	remove := func(files ...string) func(*testing.T, folder) {
		return func(t *testing.T, fs folder) {
			for _, f := range files {
				must(t, fs.RemoveAll(f))
			}
		}
	}
	part := func(i int, change func(*testing.T, folder, string)) func(*testing.T, folder) {
		return func(t *testing.T, fs folder) { change(t, fs, partsOf(t, fs)[i]) }
	}
	flip := func(t *testing.T, fs folder, file string) { damage(t, fs, file, sizeOf(t, fs, file)/3, false) }
	cut := func(t *testing.T, fs folder, file string) { damage(t, fs, file, 20, true) }
	empty := func(t *testing.T, fs folder, file string) { damage(t, fs, file, 0, true) }
	gone := func(t *testing.T, fs folder, file string) { must(t, fs.Remove(file)) }
	both := func(name string) func(*testing.T, folder) {
		return func(t *testing.T, fs folder) {
			for _, suffix := range []string{"", ".copy"} {
				flip(t, fs, "/data/head/"+name+suffix)
			}
		}
	}
	for name, c := range map[string]struct {
		damage  func(*testing.T, folder)
		starts  bool   // without a repair
		steps   int    // of the plan
		loss    string // in the plan; "": nothing is lost
		warning string // of a query
		left    string
	}{
		"whole":                      {func(*testing.T, folder) {}, true, 0, "", "", "1 2 3 4 5 6"},
		"journal, last byte":         {flipEnd(journal, 1), true, 1, "if they were acknowledged", "if they were acknowledged", "1 2 3 4 5"},
		"journal, torn end":          {func(t *testing.T, fs folder) { damage(t, fs, journal, sizeOf(t, fs, journal)-3, true) }, true, 1, "", "", "1 2 3 4 5"},
		"journal, not covered":       {flipEnd(journal, 250), false, 1, "records 4 to 4", "records 4 to 4", "1 2 3 5 6"},
		"journal, covered":           {func(t *testing.T, fs folder) { damage(t, fs, journal, firstRecord, false) }, true, 1, "", "", "1 2 3 4 5 6"},
		"journal, header":            {func(t *testing.T, fs folder) { damage(t, fs, journal, 25, false) }, false, 1, "", "", "1 2 3 4 5 6"},
		"journal, two records":       {func(t *testing.T, fs folder) { flipEnd(journal, 350)(t, fs); flipEnd(journal, 150)(t, fs) }, false, 1, "records 3 to 3; rows of the journal's records 5 to 5", "records 3 to 3; rows", "1 2 4 6"},
		"journal, empty":             {func(t *testing.T, fs folder) { empty(t, fs, journal) }, false, 1, "from record 3 on", "from record 3 on", "1 2"},
		"journal, cut in the header": {func(t *testing.T, fs folder) { damage(t, fs, journal, 10, true) }, false, 1, "from record 3 on", "from record 3 on", "1 2"},
		"journal, header and end": {func(t *testing.T, fs folder) {
			damage(t, fs, journal, 25, false)
			damage(t, fs, journal, sizeOf(t, fs, journal)-3, true)
		}, false, 1, "from record 6 on", "from record 6 on", "1 2 3 4 5"},
		"journal, missing":               {remove("/data/journal"), true, 1, "from record 3 on", "from record 3 on", "1 2"},
		"data part, flipped":             {part(0, flip), true, 1, "1 row of 1 series", "metrics from", "2 3 4 5 6"},
		"data part, cut":                 {part(0, cut), false, 1, "1 row of 1 series", "metrics from", "2 3 4 5 6"},
		"data part, empty":               {part(2, empty), false, 1, "1 row of 1 series", "metrics from", "1 3 4 5 6"},
		"data part, missing":             {part(2, gone), false, 1, "1 row of 1 series", "metrics from", "1 3 4 5 6"},
		"labels, cut":                    {part(1, cut), false, 1, "labels of 1 series", "series of metrics whose labels", "2 3 4 5 6"},
		"labels, missing":                {part(3, gone), false, 1, "labels of 1 series", "series of metrics whose labels", "1 3 4 5 6"},
		"MANIFEST":                       {func(t *testing.T, fs folder) { flip(t, fs, "/data/head/MANIFEST") }, true, 1, "", "", "1 2 3 4 5 6"},
		"MANIFEST.copy":                  {func(t *testing.T, fs folder) { gone(t, fs, "/data/head/MANIFEST.copy") }, true, 1, "", "", "1 2 3 4 5 6"},
		"MANIFEST and its copy":          {both("MANIFEST"), false, 1, "not in the bucket", "not in the bucket", ""},
		"MANIFEST and its copy, missing": {remove("/data/head/MANIFEST", "/data/head/MANIFEST.copy"), false, 1, "not in the bucket", "not in the bucket", ""},
		"METADATA":                       {func(t *testing.T, fs folder) { flip(t, fs, "/data/head/METADATA") }, true, 1, "", "", "1 2 3 4 5 6"},
		"METADATA and its copy":          {both("METADATA"), true, 1, "type, help and unit", "", "1 2 3 4 5 6"},
		"a file that no manifest names": {func(t *testing.T, fs folder) {
			f, err := fs.Create("/data/head/00000099.part", vfs.WriteCategoryUnspecified)
			must(t, err)
			must(t, f.Close())
		}, true, 0, "", "", "1 2 3 4 5 6"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s := damagedFolder(t)
			c.damage(t, s.mem)
			for _, dir := range []string{"/data", "/data/head", "/data/journal"} {
				if err := syncFolder(s.mem, dir); !errors.Is(err, os.ErrNotExist) {
					must(t, err)
				}
			}
			r, _, err := s.reopen(t, s.mem.CrashClone(vfs.CrashCloneCfg{}))
			if err == nil {
				must(t, r.Close())
			}
			if (err == nil) != c.starts {
				t.Errorf("before the repair: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "inspect folder /data --repair") {
				t.Errorf("%v does not name the repair", err)
			}
			before := len(filesUnder(t, s.mem, "/data"))
			steps, err := PlanRepair(ctx, s.mem, "/data")
			must(t, err)
			if after := len(filesUnder(t, s.mem, "/data")); after != before {
				t.Errorf("the plan changed the folder")
			}
			if len(steps) != c.steps {
				t.Fatalf("%d steps: %+v", len(steps), steps)
			}
			for _, step := range steps {
				if c.loss == "" && step.Loss != "" || !strings.Contains(step.Loss, c.loss) || step.Why == "" || step.Action == "" {
					t.Errorf("step %+v, want the loss of %q", step, c.loss)
				}
				must(t, step.Do(ctx))
			}
			steps, err = PlanRepair(ctx, s.mem, "/data")
			if err != nil || len(steps) > 0 && c.left != "" {
				t.Errorf("after the repair: %+v, %v", steps, err)
			}
			notes, err := repair.Notes(s.mem, "/data")
			if err != nil || len(notes) < c.steps {
				t.Errorf("notes: %+v, %v", notes, err)
			}
			disk := s.mem.CrashClone(vfs.CrashCloneCfg{}) // the repair is durable
			r, log, err := s.reopen(t, disk)
			must(t, err)
			got, warnings := r.values(t)
			if got != c.left {
				t.Errorf("left: %q", got)
			}
			if c.warning == "" && len(warnings) > 0 || c.warning != "" && (len(warnings) == 0 || !strings.Contains(warnings[0], c.warning)) {
				t.Errorf("warnings: %q", warnings)
			}
			if c.loss != "" && !strings.Contains(log.String(), "queries lack data") {
				t.Errorf("log: %s", log)
			}
			must(t, r.push("a", up, s.now, 9))
			must(t, r.Close())
			checkFolder(t, disk)
		})
	}
}

// TestLostHead: the parts of a folder are lost as a whole, or a repair that sets them aside is killed half
// way. A repair leads to a server that starts, unless the journal has all records anyway.
func TestLostHead(t *testing.T) {
	ctx := context.Background()
	removeHead := func(t *testing.T, fs *vfs.MemFS) { must(t, fs.RemoveAll("/data/head")) }
	removeManifest := func(t *testing.T, fs *vfs.MemFS) {
		must(t, fs.Remove("/data/head/MANIFEST"))
		must(t, fs.Remove("/data/head/MANIFEST.copy"))
	}
	for name, c := range map[string]struct {
		damage    func(*testing.T, *vfs.MemFS)
		truncated bool // the journal begins after record 1
		kill      bool // the first repair
		start     bool // before the second one
		left      string
	}{
		"head":                           {removeHead, true, false, false, ""},
		"head, and a start":              {removeHead, true, false, true, ""},
		"head, the journal is whole":     {removeHead, false, false, false, "1 2 3 4 5 6 7"},
		"manifest, and a kill":           {removeManifest, true, true, false, ""},
		"manifest, and a kill and start": {removeManifest, true, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := damagedFolder(t)
			if c.truncated {
				r, _, err := s.reopen(t, s.mem)
				must(t, err)
				must(t, r.Flush())
				must(t, r.Close())
			}
			r, _, err := s.reopen(t, s.mem)
			must(t, err)
			must(t, r.push("a", model.LabelsOf("__name__", "m7"), s.now, 7))
			disk := s.mem.CrashClone(vfs.CrashCloneCfg{})
			must(t, r.Close())
			if first := filesUnder(t, disk, "/data/journal")[0]; strings.HasSuffix(first, "00001.journal") == c.truncated {
				t.Fatal(first)
			}
			c.damage(t, disk)
			if c.kill { // after the first of two folders
				moved := 0
				steps, err := PlanRepair(ctx, errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if op.Kind == errorfs.OpRename && (op.Path == "/data/head" || op.Path == "/data/journal") {
						if moved++; moved > 1 {
							return errorfs.ErrInjected
						}
					}
					return nil
				})), "/data")
				must(t, err)
				if err := steps[0].Do(ctx); !errors.Is(err, errorfs.ErrInjected) {
					t.Fatal(err)
				}
			}
			if c.start {
				if r, _, err = s.reopen(t, disk); err == nil {
					t.Error("it starts without a repair")
					must(t, r.Close())
				} else if !strings.Contains(err.Error(), "inspect folder /data --repair") {
					t.Errorf("%v does not name the repair", err)
				}
			}
			steps, err := PlanRepair(ctx, disk, "/data")
			must(t, err)
			if (len(steps) == 0) != (c.left != "") {
				t.Fatalf("plan: %+v", steps)
			}
			for _, step := range steps {
				if !strings.Contains(step.Loss, "not in the bucket") {
					t.Errorf("step: %+v", step)
				}
				must(t, step.Do(ctx))
			}
			if steps, err = PlanRepair(ctx, disk, "/data"); err != nil || len(steps) > 0 {
				t.Errorf("after the repair: %+v, %v", steps, err)
			}
			r, _, err = s.reopen(t, disk)
			must(t, err)
			got, warnings := r.values(t)
			if got != c.left || (len(warnings) == 0) != (c.left != "") {
				t.Errorf("left: %q, warnings: %q", got, warnings)
			}
			must(t, r.push("a", up, s.now, 9))
			must(t, r.Close())
			checkFolder(t, disk)
		})
	}
}

// TestShipWithoutLabels: rows whose labels were lost do not stop ships. Labels that come again find the rows;
// the others are kept in the folder set-aside.
func TestShipWithoutLabels(t *testing.T) {
	ctx := context.Background()
	s := damagedFolder(t)
	for _, i := range []int{3, 1} {
		must(t, s.mem.Remove(partsOf(t, s.mem)[i]))
	}
	steps, err := PlanRepair(ctx, s.mem, "/data")
	must(t, err)
	for _, step := range steps {
		must(t, step.Do(ctx))
	}
	r, log, err := s.reopen(t, s.mem)
	must(t, err)
	if got, _ := r.values(t); got != "3 4 5 6" {
		t.Errorf("without labels: %s", got)
	}
	must(t, r.push("a", model.LabelsOf("__name__", "m2"), s.now, 22))
	if got, _ := r.values(t); got != "2 22 3 4 5 6" {
		t.Errorf("with labels again: %s", got)
	}
	must(t, r.Ship())
	got, warnings := r.values(t)
	if got != "2 22 3 4 5 6" || len(warnings) < 2 {
		t.Errorf("shipped: %s, warnings %q", got, warnings)
	}
	if !strings.Contains(log.String(), "shipping without series whose labels were lost") {
		t.Errorf("log: %s", log)
	}
	kept := 0
	for _, f := range filesUnder(t, s.mem, "/data/set-aside") {
		if strings.HasSuffix(f, ".part") {
			kept++
		}
	}
	if kept == 0 {
		t.Error("no part was kept")
	}
	must(t, r.Close())
}
