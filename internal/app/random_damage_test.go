package app

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	damageSeed = flag.Uint64("damage-seed", 0, "the one damage of TestRandomDamage to try; 0: as many as -damages says")
	damages    = flag.Int("damages", 0, "random damages of TestRandomDamage; 0: 100, in the torture tests 1000")
)

// TestRandomDamage damages a file of the data folder or of the bucket at random, starts the engine and asks
// 50 queries of both signals over the HTTP APIs. Each response must be right or say what is damaged, unless
// the start is refused with a message that names the file. A quarter of the damages happen to a running
// server.
//
// These losses leave no trace on the disk, and are not tried:
//   - an older copy of the data folder and the bucket together, as of a snapshot of the machine, or of the
//     data folder if the bucket is the same as then.
//   - the last records of the journal, cut off exactly between two of them, or with whole segments: the
//     folder is as it was before they were written.
func TestRandomDamage(t *testing.T) {
	n := *damages
	switch {
	case n > 0:
	case tortured:
		n = 1000
	case testing.Short():
		t.Skip("make test runs it by itself")
	default:
		n = 100
	}
	first := rand.Uint64()
	if *damageSeed != 0 {
		first, n = *damageSeed, 1
	}
	t.Logf("%d damages from seed %d", n, first)
	worlds := map[int]*damageWorld{}
	table := map[string]map[outcomeOfDamage]int{}
	total := map[outcomeOfDamage]int{}
	began := time.Now()
	for i := range n {
		seed := first + uint64(i)
		number := int(seed % damageWorlds)
		if worlds[number] == nil {
			worlds[number] = newDamageWorld(t, number)
		}
		trial := worlds[number].damage(seed)
		if table[trial.kind] == nil {
			table[trial.kind] = map[outcomeOfDamage]int{}
		}
		table[trial.kind][trial.outcome]++
		total[trial.outcome]++
		if trial.outcome.isBad() {
			t.Errorf("%s: %s\nagain: go test ./internal/app -run TestRandomDamage -damage-seed %d", trial.outcome, trial, seed)
		} else if *damageSeed != 0 {
			t.Logf("%s: %s", trial.outcome, trial)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(table)) {
		t.Logf("%-28s %v", kind, table[kind])
	}
	t.Logf("%-28s %v in %v", "all", total, time.Since(began).Round(time.Second))
}

// outcomeOfDamage is what became of a damage.
type outcomeOfDamage string

const (
	refusedStart outcomeOfDamage = "refused"    // the engine did not start, and named the file
	saidError    outcomeOfDamage = "error"      // some queries failed, and named the file
	saidWarning  outcomeOfDamage = "warning"    // some results differed, and had a warning that named the file
	saidLog      outcomeOfDamage = "logged"     // some results differed, and only the log said so: see mayLog
	allRight     outcomeOfDamage = "right"      // all results are right
	unnamed      outcomeOfDamage = "unnamed"    // something failed, and no text names the file
	silent       outcomeOfDamage = "SILENT"     // a result is wrong, and nothing says so
	panicked     outcomeOfDamage = "PANIC"      // the server panicked
	madeItWorse  outcomeOfDamage = "MADE WORSE" // with the damage undone, the server is not right again
)

func (o outcomeOfDamage) isBad() bool {
	return o == unnamed || o == silent || o == panicked || o == madeItWorse
}

// trial is one damage and what it led to.
type trial struct {
	w    *damageWorld
	r    *rand.Rand
	disk *vfs.MemFS

	kind, what string
	// paths are the damaged files, and before their bytes: nil if there was no such file.
	paths  []string
	before map[string][]byte
	// whole means that files are lost or of another time, and none has bad bytes.
	whole bool

	log     damageLog
	steps   []string
	outcome outcomeOfDamage
	why     string
}

func (t *trial) String() string {
	said := t.log.String()
	return fmt.Sprintf("%s, %s\n%s\n%s\nlog: %s", t.what, strings.Join(t.steps, ", "), strings.Join(t.paths[:min(len(t.paths), 3)], " "), t.why, said[:min(len(said), 2000)])
}

// damage does the damage of a seed to a copy of the world.
func (w *damageWorld) damage(seed uint64) (t *trial) {
	t = &trial{w: w, r: rand.New(rand.NewPCG(seed, 2)), disk: w.end.CrashClone(vfs.CrashCloneCfg{}), outcome: allRight}
	var e *Engine
	defer func() {
		if p := recover(); p != nil {
			t.outcome, t.why = panicked, fmt.Sprint(p)
		}
	}()
	running := t.r.IntN(4) == 0
	if running {
		t.step("while the server runs")
		e, _ = w.tryOpen(t.disk, &t.log)
		if t.r.IntN(2) == 0 {
			t.step("after queries")
			w.ask(e, &t.log)
		}
	}
	t.apply(running)
	if running {
		t.compare(e, w.right)
		if t.r.IntN(2) == 0 {
			t.work(e)
		}
		t.close(e)
	}
	if !running || t.r.IntN(2) == 0 {
		t.start()
	}
	return t
}

func (t *trial) step(text string) { t.steps = append(t.steps, text) }

// start starts the engine on the damaged disk.
func (t *trial) start() {
	t.step("start")
	e, err := t.w.tryOpen(t.disk, &t.log)
	if err != nil {
		t.result(refusedStart, err.Error(), err.Error())
		if t.r.IntN(3) == 0 {
			t.undo()
		}
		return
	}
	right := t.w.right
	if slices.Contains(t.steps, "work") {
		right = t.w.afterWork
	}
	t.compare(e, right)
	if t.r.IntN(3) == 0 && !slices.Contains(t.steps, "work") {
		t.work(e)
		if t.r.IntN(2) == 0 {
			t.close(e)
			t.start()
			return
		}
	}
	t.close(e)
}

// work lets the engine work for a day and compares again. Errors of the work are told.
func (t *trial) work(e *Engine) {
	t.step("work")
	if err := t.w.work(e); err != nil {
		t.why += "\nwork: " + err.Error()
		fmt.Fprintln(&t.log, err) // the background work logs its errors
	}
	t.compare(e, t.w.afterWork)
}

func (t *trial) close(e *Engine) {
	if err := e.Close(); err != nil {
		fmt.Fprintln(&t.log, err) // the process ends with it
	}
}

// undo puts the damaged files back as they were after a refused start. The server must then start and be
// right, because that is what an operator with a good copy does.
func (t *trial) undo() {
	t.step("undo")
	for p, data := range t.before {
		if data == nil {
			_ = t.disk.Remove(p)
		} else {
			putFile(t.disk, p, data)
		}
	}
	e, err := t.w.tryOpen(t.disk, nil)
	if err != nil {
		t.outcome, t.why = madeItWorse, err.Error()
		return
	}
	for i, a := range t.w.ask(e, nil) {
		if a.result != t.w.right[i].result && !slices.Contains(t.steps, "work") {
			t.outcome, t.why = madeItWorse, t.w.queries[i].String()+"\n"+difference(t.w.right[i].result, a.result)
		}
	}
	t.close(e)
}

// compare asks all queries. A bad outcome stays.
func (t *trial) compare(e *Engine, right []damageAnswer) {
	for i, a := range t.w.ask(e, &t.log) {
		query := t.w.queries[i].String()
		switch {
		case a.status != http.StatusOK:
			t.result(saidError, query+"\n"+a.said, a.said+t.log.String())
		case a.result == right[i].result:
		case a.said != "":
			t.result(saidWarning, query+"\n"+a.said, a.said+t.log.String())
		case t.mayLog() && t.names(t.log.String()):
			t.result(saidLog, query+"\n"+difference(right[i].result, a.result), t.log.String())
		default:
			t.outcome, t.why = silent, query+"\n"+difference(right[i].result, a.result)
			return
		}
	}
}

// mayLog reports whether the log alone may tell the loss. The end of a journal is dropped after every crash,
// and no later response could tell for how long.
func (t *trial) mayLog() bool { return t.kind == "journal" || t.kind == "folder "+crashDir+"/journal" }

// result notes an outcome if the text names the damaged file, and otherwise a bad one.
func (t *trial) result(o outcomeOfDamage, why, text string) {
	switch {
	case t.outcome.isBad():
	case !t.names(text):
		t.outcome, t.why = unnamed, why
	default:
		t.outcome, t.why = o, why
	}
}

// anyFile matches the name of a file of the data folder or of the bucket.
var anyFile = regexp.MustCompile(`[0-9]+\.(part|journal)|/journal\b|MANIFEST|METADATA|(blocks|catalog)/\w|\w+-[0-9a-f]{16}`)

// names reports whether a text names one of the damaged files. If a whole file is lost or of another time, it
// may be another file that does not fit it, since no reader can know which of the two is right.
func (t *trial) names(text string) bool {
	return t.whole && anyFile.MatchString(text) || slices.ContainsFunc(t.paths, func(p string) bool {
		return strings.Contains(text, strings.TrimSuffix(path.Base(p), ".json"))
	})
}

// difference shows where two texts begin to differ.
func difference(want, got string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	show := func(s string) string { return s[max(0, min(i-60, len(s))):min(len(s), i+200)] }
	return fmt.Sprintf("want ...%s\ngot  ...%s", show(want), show(got))
}

// putFile replaces a file.
func putFile(disk *vfs.MemFS, p string, data []byte) {
	err := disk.MkdirAll(path.Dir(p), 0o755)
	var f vfs.File
	if err == nil {
		f, err = disk.Create(p, vfs.WriteCategoryUnspecified)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

// apply draws the damage and does it.
func (t *trial) apply(running bool) {
	now := files(t.disk)
	for t.paths == nil {
		old := files(t.w.earlier[t.r.IntN(len(t.w.earlier))])
		switch n := t.r.IntN(12); {
		case n == 0 && !running:
			t.olderFolder(now, old)
		case n == 1:
			t.resurrect(now, old)
		default:
			t.oneFile(now, old, running)
		}
	}
}

// olderFolder puts an older copy of one folder back.
func (t *trial) olderFolder(now, old map[string][]byte) {
	dirs := map[string]bool{bucketDir: true, crashDir: true}
	for p := range now {
		dirs[path.Dir(p)] = true
	}
	dir := slices.Sorted(maps.Keys(dirs))[t.r.IntN(len(dirs))]
	after := maps.Clone(now)
	for p := range now {
		if strings.HasPrefix(p, dir+"/") {
			delete(after, p)
		}
	}
	for p, data := range old {
		if strings.HasPrefix(p, dir+"/") {
			after[p] = data
		}
	}
	if onlyEndsEarlier(now, after) || dir == crashDir && maps.EqualFunc(bucketFiles(now), bucketFiles(old), bytes.Equal) {
		return
	}
	t.before = map[string][]byte{}
	for p := range now {
		if strings.HasPrefix(p, dir+"/") && old[p] == nil {
			t.before[p] = now[p]
			_ = t.disk.Remove(p)
		}
	}
	for p, data := range old {
		if strings.HasPrefix(p, dir+"/") && !bytes.Equal(now[p], data) {
			t.before[p] = now[p]
			putFile(t.disk, p, data)
		}
	}
	t.kind, t.whole, t.what, t.paths = "folder "+dir, true, "older copy of "+dir, slices.Sorted(maps.Keys(t.before))
}

func bucketFiles(all map[string][]byte) map[string][]byte {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(p string, _ []byte) bool { return !strings.HasPrefix(p, bucketDir+"/") })
	return some
}

// resurrect puts a file back that was deleted.
func (t *trial) resurrect(now, old map[string][]byte) {
	var gone []string
	for p := range old {
		if now[p] == nil {
			gone = append(gone, p)
		}
	}
	if len(gone) == 0 {
		return
	}
	slices.Sort(gone)
	p := gone[t.r.IntN(len(gone))]
	t.kind, t.whole, t.what, t.paths, t.before = fileKind(p), true, "deleted file put back", []string{p}, map[string][]byte{p: nil}
	putFile(t.disk, p, old[p])
}

// oneFile damages a file of a random kind.
func (t *trial) oneFile(now, old map[string][]byte, running bool) {
	kinds := map[string][]string{}
	for _, p := range slices.Sorted(maps.Keys(now)) {
		kinds[fileKind(p)] = append(kinds[fileKind(p)], p)
	}
	names := slices.Sorted(maps.Keys(kinds))
	kind := names[t.r.IntN(len(names))]
	p := kinds[kind][t.r.IntN(len(kinds[kind]))]
	data := now[p]
	changed, what := t.change(data, old[p])
	switch {
	case changed == nil && what != deleted, changed != nil && bytes.Equal(changed, data):
		return
	}
	after := maps.Clone(now)
	if after[p] = changed; changed == nil {
		delete(after, p)
	}
	if onlyEndsEarlier(now, after) {
		return
	}
	t.kind, t.whole, t.what, t.paths, t.before = kind, what == deleted || what == older, what, []string{p}, map[string][]byte{p: data}
	switch {
	case changed == nil:
		if err := t.disk.Remove(p); err != nil {
			panic(err)
		}
	case running && len(changed) >= len(data):
		overwrite(t.disk, p, changed)
	default:
		putFile(t.disk, p, changed)
	}
}

// Damages of whole files.
const (
	deleted = "deleted"
	older   = "an older copy"
)

// change returns a damaged copy of the bytes of a file, and what the damage is. A deleted file has no bytes.
func (t *trial) change(data, old []byte) (changed []byte, what string) {
	r, changed := t.r, slices.Clone(data)
	if len(data) == 0 {
		if r.IntN(2) == 0 {
			return nil, deleted
		}
		return []byte("x"), "append"
	}
	at := r.IntN(len(data))
	switch r.IntN(6) {
	case 0:
		changed[at] ^= 1 << r.IntN(8)
		return changed, fmt.Sprintf("a flipped bit at %d of %d", at, len(data))
	case 1:
		n := min(1+r.IntN(1<<r.IntN(13)), len(data)-at)
		clear(changed[at : at+n])
		return changed, fmt.Sprintf("%d zeros at %d of %d", n, at, len(data))
	case 2:
		return changed[:at], fmt.Sprintf("truncated to %d of %d", at, len(data))
	case 3:
		tail := make([]byte, 1+r.IntN(200))
		switch r.IntN(3) {
		case 0:
			tail = data[max(0, len(data)-len(tail)):]
		case 1:
			for i := range tail {
				tail[i] = byte(r.IntN(256))
			}
		}
		return append(changed, tail...), fmt.Sprintf("%d bytes after %d", len(tail), len(data))
	case 4:
		return nil, deleted
	}
	return old, older
}

// overwrite changes a file in place, so that those who have it open see the change.
func overwrite(disk *vfs.MemFS, p string, data []byte) {
	f, err := disk.OpenReadWrite(p, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
}
