package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
)

// damageWorld is a disk with every kind of file that a server makes, and earlier copies of that disk.
type damageWorld struct {
	end *vfs.MemFS
	// earlier has copies from the same life, the oldest first.
	earlier []*vfs.MemFS
	now     int64
	queries []damageQuery
	// right has the responses of the undamaged disk, and afterWork those after [work].
	right, afterWork []damageAnswer
}

// damageWorlds is the number of different worlds. A world is a function of its number.
const damageWorlds = 4

const (
	damageSteps = 126
	damageStep  = 20 * time.Minute
	bucketDir   = "/bucket"
)

// damageBegin is 22:00 UTC, so that the world has one whole day, which ends long enough before the end of the
// world to be settled.
var damageBegin = time.Date(2023, 11, 14, 22, 0, 0, 0, time.UTC).UnixNano()

// newDamageWorld lives through a world. Every second one ends by a stop, the others by a kill.
func newDamageWorld(t *testing.T, number int) *damageWorld {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(number), 1))
	w := &damageWorld{now: damageBegin}
	mem := vfs.NewCrashableMem()
	e := w.open(t, mem, nil)
	kill := func() {
		clone := mem.CrashClone(vfs.CrashCloneCfg{})
		must(t, e.Close())
		mem = clone
	}
	for step := range damageSteps {
		w.now += int64(damageStep)
		w.push(t, e, r, step)
		switch left := damageSteps - step; {
		case left == 90 || left == 15:
			w.forget(t, e, step)
		case left == 12:
			// What is older than the one whole day has expired. No query asks for it.
			must(t, e.catalog.Expire(context.Background(), olderThan(damageBegin+int64(2*time.Hour)), time.Minute))
		case left == 5 || left == 3:
			kill()
			e = w.open(t, mem, nil)
		case left <= 7: // the rest stays in the journal
		case step%7 == 6:
			must(t, e.Ship())
		case step%7 == 2 && left > 20:
			must(t, e.Compact(context.Background()))
		case step%2 == 0:
			must(t, e.Flush())
		}
		if slices.Contains([]int{30, 60, 90, damageSteps - 14, damageSteps - 6, damageSteps - 2}, step) {
			w.earlier = append(w.earlier, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
	}
	if number%2 == 1 {
		must(t, e.Close())
	} else {
		kill()
	}
	w.end = mem.CrashClone(vfs.CrashCloneCfg{})
	w.queries = damageQueries(damageBegin+int64(4*time.Hour), w.now)
	for _, after := range []bool{false, true} {
		disk := w.end.CrashClone(vfs.CrashCloneCfg{})
		log := new(damageLog)
		e := w.open(t, disk, log)
		if after {
			must(t, w.work(e))
			w.afterWork = w.ask(e, log)
		} else {
			w.right = w.ask(e, log)
		}
		must(t, e.Close())
		if said := log.String(); said != "" {
			t.Fatalf("an undamaged disk makes the server say: %s", said)
		}
	}
	if len(w.queries) != 50 {
		t.Fatalf("%d queries", len(w.queries))
	}
	for i, a := range w.right {
		if a.status != http.StatusOK || strings.Contains(a.result, "[]") || strings.Contains(a.result, `"data":{}`) {
			t.Fatalf("%s: %d %s %s", w.queries[i], a.status, a.result, a.said)
		}
	}
	return w
}

// open opens the engine on a disk. It logs to log, which may be nil.
func (w *damageWorld) open(t *testing.T, disk vfs.FS, log *damageLog) *Engine {
	t.Helper()
	e, err := w.tryOpen(disk, log)
	must(t, err)
	return e
}

func (w *damageWorld) tryOpen(disk vfs.FS, log *damageLog) (*Engine, error) {
	b, err := bucketfs.New(disk, bucketDir)
	if err != nil {
		return nil, err
	}
	return OpenEngine(context.Background(), EngineOptions{
		FS: disk, DataDir: crashDir, Bucket: b, Node: "n", MemoryBytes: 64 << 20, Idle: true,
		Now: func() int64 { return w.now }, Logger: log.logger(),
	})
}

// work does what a server does in a day without pushes.
func (w *damageWorld) work(e *Engine) error {
	began := w.now
	defer func() { w.now = began }()
	if err := e.Ship(); err != nil {
		return err
	}
	for range 5 {
		w.now += int64(9 * time.Hour)
		if err := e.Compact(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// push pushes the rows of one step for two tenants.
func (w *damageWorld) push(t *testing.T, e *Engine, r *rand.Rand, step int) {
	t.Helper()
	began := w.now - int64(damageStep)
	for _, tenant := range []string{model.DefaultTenant, "other"} {
		metrics, logs := &worldtest.Batch{Tenant: tenant, Signal: model.Metrics}, &worldtest.Batch{Tenant: tenant, Signal: model.Logs}
		for i := range 12 {
			s := worldtest.Series{Labels: model.LabelsOf("__name__", "requests_total", "code", fmt.Sprint(200+i%3*100), "instance", fmt.Sprint("i", i/3))}
			g := worldtest.Series{Labels: model.LabelsOf("__name__", "temperature", "room", fmt.Sprint("r", i))}
			for m := range 10 {
				at := began + int64(m)*int64(2*time.Minute)
				s.Rows = append(s.Rows, worldtest.Float(at, math.Float64bits(float64(step*10+m)*float64(i+1))))
				g.Rows = append(g.Rows, worldtest.Float(at, math.Float64bits(20+float64(r.IntN(100))/10)))
			}
			s.Rows = append(s.Rows, worldtest.Exemplar(r, began))
			metrics.Series = append(metrics.Series, s, g)
		}
		if step%10 == 0 { // new series, now and then
			metrics.Series = append(metrics.Series, worldtest.Series{
				Labels: model.LabelsOf("__name__", "build_info", "version", fmt.Sprint("v", step)),
				Rows:   []worldtest.Row{worldtest.Float(w.now, math.Float64bits(1))},
			})
		}
		for i := range 3 {
			s := worldtest.Series{Labels: model.LabelsOf("__name__", "latency", "instance", fmt.Sprint("i", i))}
			for m := range 5 {
				s.Rows = append(s.Rows, worldtest.HistogramRow(began+int64(m)*int64(4*time.Minute), damageHistogram(step*5+m+i)))
			}
			metrics.Series = append(metrics.Series, s)
		}
		for i := range 6 {
			s := worldtest.Series{Labels: model.LabelsOf("app", []string{"shop", "auth", "db"}[i%3], "pod", fmt.Sprint("p", i))}
			for m := range 4 {
				at := began + int64(m)*int64(5*time.Minute) + int64(i)
				text := fmt.Sprintf(`level=%s msg="request %d" took=%dms path=/api/%d`, []string{"info", "warn", "error"}[r.IntN(3)], step, r.IntN(900), r.IntN(50))
				if i%2 == 1 {
					text = fmt.Sprintf(`{"level":"info","status":%d,"user":{"id":%d},"text":"payment %x"}`, 200+r.IntN(4)*100, r.IntN(1000), r.Uint64())
				}
				s.Rows = append(s.Rows, worldtest.LineRow(at, &model.Line{Text: []byte(text)}))
			}
			logs.Series = append(logs.Series, s)
		}
		must(t, pushBatch(e.Path(), metrics))
		must(t, pushBatch(e.Path(), logs))
		if step%20 == 0 {
			for i := range 5 + step/20 {
				e.Path().Metadata(tenant, fmt.Append(nil, "family_", i), "counter", fmt.Append(nil, "Help of step ", step), nil)
			}
		}
	}
}

func damageHistogram(n int) *model.Histogram {
	return &model.Histogram{
		Schema: 1, ZeroThreshold: math.Float64bits(1e-128), Count: uint64(3*n + 3), Sum: math.Float64bits(float64(7 * n)), ZeroCount: 1,
		PositiveSpans: []model.HistogramSpan{{Offset: 1, Length: 2}}, Positive: []uint64{uint64(n + 1), uint64(2*n + 1)},
	}
}

// forget deletes rows of both signals.
func (w *damageWorld) forget(t *testing.T, e *Engine, step int) {
	t.Helper()
	for _, d := range []deletion.Deletion{
		{Signal: model.Metrics, Matchers: []catalog.Matcher{{Name: "instance", Op: model.MatchEqual, Value: fmt.Sprint("i", step%3)}}},
		{Signal: model.Logs, Matchers: []catalog.Matcher{{Name: "pod", Op: model.MatchEqual, Value: fmt.Sprint("p", step%5)}}},
	} {
		d.Tenant, d.Range = model.DefaultTenant, model.TimeRange{Min: w.now - int64(5*time.Hour), Max: w.now - int64(time.Hour)}
		_, err := e.catalog.Delete(context.Background(), catalog.Deletion{Deletion: d})
		must(t, err)
	}
}

// files returns the paths of all files of a disk and their content.
func files(disk *vfs.MemFS) map[string][]byte {
	all := make(map[string][]byte)
	var walk func(dir string)
	walk = func(dir string) {
		names, err := disk.List(dir)
		if err != nil {
			return // not there
		}
		for _, name := range names {
			path := dir + "/" + name
			if info, err := disk.Stat(path); err == nil && info.IsDir() {
				walk(path)
			} else if err == nil {
				all[path] = readFile(disk, path)
			}
		}
	}
	walk(crashDir)
	walk(bucketDir)
	return all
}

func readFile(disk vfs.FS, path string) []byte {
	f, err := disk.Open(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		panic(err)
	}
	return data
}

// fileKind names the kind of a file, for the table of outcomes. A kind that is not known here is named by its
// folder and its ending, so that new kinds are damaged, too.
func fileKind(path string) string {
	dir, name := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case dir == crashDir+"/head" && strings.HasSuffix(name, ".part"):
		return "part"
	case dir == bucketDir+"/blocks" && strings.Contains(name, "-metrics-"):
		return "block of metrics"
	case dir == bucketDir+"/blocks" && strings.Contains(name, "-logs-"):
		return "block of logs"
	case dir == bucketDir+"/catalog":
		for _, kind := range []string{"merged", "expired", "delete"} {
			if strings.HasPrefix(name, kind+"-") {
				return "record: " + kind
			}
		}
		return "record: ship"
	case strings.HasSuffix(name, ".journal"):
		return "journal"
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return dir + "/*" + name[i:]
	}
	if strings.ContainsAny(name, "0123456789") {
		return dir + "/*"
	}
	return path
}

// onlyEndsEarlier reports whether the journal has changed, and only by having fewer records at its end, all
// of which are in no part. See TestRandomDamage.
func onlyEndsEarlier(before, after map[string][]byte) bool {
	was, _ := readJournal(before)
	is, whole := readJournal(after)
	return whole && is < was && is >= coveredByParts(before)
}

// readJournal returns the number of the last record of the journal, and whether it has nothing but whole
// records. See docs/format-journal.md.
func readJournal(all map[string][]byte) (last uint64, whole bool) {
	const header, frame = 44, 24
	whole = true
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasSuffix(p, ".journal") {
			continue
		}
		segment := all[p]
		if len(segment) < header {
			return last, false
		}
		last = binary.LittleEndian.Uint64(segment[24:]) - 1
		at := header
		for at+frame <= len(segment) {
			length := int(binary.LittleEndian.Uint32(segment[at+4:]))
			if at+frame+length > len(segment) || crc32.Checksum(segment[at+4:at+frame], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(segment[at:]) {
				break
			}
			at += frame + length
			last++
		}
		whole = whole && at == len(segment)
	}
	return last, whole
}

// coveredByParts returns the number of the last record whose rows are in parts.
func coveredByParts(all map[string][]byte) uint64 {
	var manifest struct{ Covered uint64 }
	_, body, _ := bytes.Cut(all[crashDir+"/head/MANIFEST"], []byte("\n"))
	if err := json.Unmarshal(body, &manifest); err != nil {
		panic(err)
	}
	return manifest.Covered
}
