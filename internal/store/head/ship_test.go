package head

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
	"github.com/shaledb/shale/internal/store/head/metadata"
)

// awayBucket fails as often as it is told to, and notes the files that it is given.
type awayBucket struct {
	*bucketOfBlocks
	failures []error
	fail     func() bool
	files    []string
}

func (b *awayBucket) Ship(ctx context.Context, s *Ship) error {
	for _, blk := range s.Blocks {
		b.files = append(b.files, blk.File)
		if len(b.failures) > 0 {
			err := b.failures[0]
			b.failures = b.failures[1:]
			return err
		}
		if b.fail != nil && b.fail() {
			return away(1)[0]
		}
	}
	return b.bucketOfBlocks.Ship(ctx, s)
}

func newAwayRig(t *testing.T) (r *rig, b *awayBucket, blocksMade func() int) {
	made := 0
	b = new(awayBucket)
	r = newRig(t, func(o *Options) {
		b.bucketOfBlocks = o.Shipper.(*bucketOfBlocks)
		o.Shipper = b
		o.FS = createHook(o.FS, func(name string) {
			if strings.HasSuffix(name, ".block") {
				made++
			}
		})
	})
	return r, b, func() int { return made }
}

func away(n int) []error {
	return slices.Repeat([]error{fmt.Errorf("%w: the bucket is away", model.ErrTransient)}, n)
}

// TestOutage: while the bucket is away, a block is made once, and sent again and again.
func TestOutage(t *testing.T) {
	r, b, made := newAwayRig(t)
	r.push("a", 0, 50, r.now, 1)
	b.failures = away(5)
	for range 5 {
		if err := r.head.Ship(context.Background()); err == nil {
			t.Fatal("the bucket was not away")
		}
	}
	r.push("a", 0, 50, r.now+1, 2) // goes into the next block
	if made() != 1 {
		t.Errorf("the block was made %d times", made())
	}
	if got := r.metric("shale_head_ship_errors_total"); got != 5 {
		t.Errorf("%v errors are counted", got)
	}
	r.expect("a", 0, 50, map[int64]float64{r.now: 1, r.now + 1: 2})
	r.must(r.head.Ship(context.Background()))
	if len(slices.Compact(b.files[:6])) != 1 {
		t.Errorf("the files were %v", b.files)
	}
	r.expect("a", 0, 50, map[int64]float64{r.now: 1, r.now + 1: 2})
	if made() != 2 || len(b.blocks) != 2 || len(r.head.merging.built) != 0 {
		t.Errorf("%d blocks were made, %d shipped, %d are kept", made(), len(b.blocks), len(r.head.merging.built))
	}
	r.noLeftovers()
}

// TestOutageAndRestart: a restart begins with a block of the same rows.
func TestOutageAndRestart(t *testing.T) {
	for name, again := range map[string]func(*rig){"restart": (*rig).restart, "crash": (*rig).crash} {
		t.Run(name, func(t *testing.T) {
			r, b, _ := newAwayRig(t)
			r.push("a", 0, 50, r.now, 1)
			b.failures = away(1)
			if err := r.head.Ship(context.Background()); err == nil {
				t.Fatal("the bucket was not away")
			}
			again(r)
			r.noLeftovers()
			r.must(r.head.Ship(context.Background()))
			r.expect("a", 0, 50, map[int64]float64{r.now: 1})
			r.noLeftovers()
		})
	}
}

// tightSpace is space with a fixed bound.
type tightSpace struct{ free int64 }

func (s *tightSpace) Free() int64 { return s.free }
func (s *tightSpace) Reserve(n int64) (func(), error) {
	if n > s.free {
		return nil, &model.LimitError{Limit: "disk", Text: "no room"}
	}
	return func() {}, nil
}
func (*tightSpace) ReserveAnyway(int64) func() { return func() {} }
func (*tightSpace) Wrote(int64)                {}

// TestSpaceOfShip: a ship needs space for its objects only if they lie in the data folder.
func TestSpaceOfShip(t *testing.T) {
	for _, apart := range []bool{false, true} {
		space := new(tightSpace)
		r := newRig(t, func(o *Options) { o.Space, o.BucketApart = space, apart })
		r.push("a", 0, 400, r.now, 1)
		r.must(r.head.Flush(context.Background()))
		for _, p := range r.head.snapshot() {
			if p.Info.Kind == local.Data {
				space.free += p.Info.Bytes
			}
		}
		if err := r.head.Ship(context.Background()); (err == nil) != apart {
			t.Errorf("bucket apart %v: %v", apart, err)
		}
	}
}

// boundSpace counts what is written and reserved against a bound.
type boundSpace struct{ limit, used, reserved int64 }

func (s *boundSpace) Free() int64 { return s.limit - s.used - s.reserved }
func (s *boundSpace) Reserve(n int64) (func(), error) {
	if n > s.Free() {
		return nil, &model.LimitError{Limit: "disk", Text: fmt.Sprintf("no room for %d bytes: %+v", n, *s)}
	}
	s.reserved += n
	return func() { s.reserved -= n }, nil
}
func (s *boundSpace) ReserveAnyway(n int64) func() {
	s.reserved += n
	return func() { s.reserved -= n }
}
func (s *boundSpace) Wrote(n int64) { s.used += n }

// TestShipOnFullDisk: on a full disk no parts are marked, and as soon as there is space for the oldest of
// them, they are shipped. A ship that is marked keeps its space, whatever else wants it while the bucket is
// away, so that it fits when its blocks must be built again.
func TestShipOnFullDisk(t *testing.T) {
	for _, apart := range []bool{false, true} {
		space := new(boundSpace)
		r, b, _ := newAwayRig(t)
		r.head.o.Space, r.head.o.BucketApart = space, apart
		space.limit = 1 << 40
		rows := map[int64]float64{}
		for i := range 3 {
			rows[r.now+int64(i)] = float64(i)
			r.push("a", 0, 200, r.now+int64(i), float64(i))
			r.must(r.head.Flush(context.Background()))
		}
		for s := range signals {
			r.must(r.head.sortYoung(context.Background(), model.Signal(s)))
		}
		var oldest int64
		for _, p := range r.head.snapshot() {
			if p.Info.Kind == local.Data {
				oldest = max(oldest, p.Info.Bytes)
			}
		}
		space.limit = space.used
		if err := r.head.Ship(context.Background()); err == nil {
			t.Fatal("the disk was not full")
		}
		for _, p := range r.head.snapshot() {
			if p.Info.Ship != 0 {
				t.Errorf("apart %v: %s is marked, and cannot be shipped", apart, p.Info.File)
			}
		}
		space.limit = space.used + r.head.shipFactor()*oldest
		b.fail = func() bool { return true }
		if err := r.head.Ship(context.Background()); err == nil {
			t.Fatal("the bucket was not away")
		}
		built := int64(0)
		for _, blocks := range r.head.merging.built {
			for _, block := range blocks {
				built += block.Size
			}
		}
		// Others take what is free, and then the server stops, which deletes the blocks.
		space.used += space.Free()
		r.head.dropBuilt()
		space.used -= built
		b.fail = nil
		for i := 0; len(r.head.group(model.Metrics, local.Data, local.Young))+len(dataParts(r)) > 0; i++ {
			if i > 10 {
				t.Fatalf("apart %v: parts are left: %+v", apart, *space)
			}
			before := len(dataParts(r))
			err := r.head.Ship(context.Background())
			if err != nil && len(dataParts(r)) == before {
				t.Fatalf("apart %v: the ship does not fit: %v", apart, err)
			}
			space.used = space.limit - r.head.shipFactor()*oldest // its files are gone
		}
		r.expect("a", 0, 200, rows)
		if space.reserved != 0 || len(r.head.merging.reserved) != 0 {
			t.Errorf("apart %v: %d bytes are reserved in the end", apart, space.reserved)
		}
	}
}

func dataParts(r *rig) (files []string) {
	for _, p := range r.head.snapshot() {
		if p.Info.Kind == local.Data {
			files = append(files, p.Info.File)
		}
	}
	return files
}

// markedRig is a head with a ship that is marked and has reserved its space while the bucket was away.
func markedRig(t *testing.T, apart bool) (*rig, *awayBucket, *boundSpace) {
	t.Helper()
	space := &boundSpace{limit: 1 << 40}
	r, b, _ := newAwayRig(t)
	r.o.Space, r.o.BucketApart = space, apart
	r.restart()
	r.push("a", 0, 1000, r.now, 1)
	b.fail = func() bool { return true }
	if err := r.head.Ship(context.Background()); err == nil || space.reserved == 0 {
		t.Fatalf("the bucket was away, and %d bytes are reserved: %v", space.reserved, err)
	}
	return r, b, space
}

// TestMarkedShipGoesFirst: a ship that has its space goes to the bucket, although nothing else has space that
// must be done before a window is shipped.
func TestMarkedShipGoesFirst(t *testing.T) {
	ctx := context.Background()
	for name, ship := range map[string]func(*Head) error{
		"work": func(h *Head) error { _, err := h.Work(ctx); return err },
		"ship": func(h *Head) error { return h.Ship(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			r, b, space := markedRig(t, true)
			// Writes take all that they may.
			r.push("a", 0, 1000, r.now+1, 2)
			r.must(r.head.Flush(ctx))
			space.limit = space.used + space.reserved
			if err := ship(r.head); err == nil {
				t.Fatal("the bucket was not away")
			}
			b.fail = nil
			r.head.dropBuilt()
			// Writes take what the block took.
			space.used += space.Free()
			_ = ship(r.head)
			if len(b.blocks) != 1 {
				t.Fatalf("%d blocks are in the bucket: %+v", len(b.blocks), *space)
			}
			if space.reserved != 0 {
				t.Errorf("%d bytes are reserved", space.reserved)
			}
			space.limit = 1 << 40
			r.must(r.head.Ship(ctx))
			r.expect("a", 0, 1000, map[int64]float64{r.now: 1, r.now + 1: 2})
		})
	}
}

// TestShipsGoOnWithoutSpace: young parts that do not fit stop neither the windows of their signal nor those
// of the other one, which make room.
func TestShipsGoOnWithoutSpace(t *testing.T) {
	ctx := context.Background()
	for name, ship := range map[string]func(*Head) error{
		"work": func(h *Head) error { _, err := h.Work(ctx); return err },
		"ship": func(h *Head) error { return h.Ship(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			space := &boundSpace{limit: 1 << 40}
			r := newRig(t, func(o *Options) { o.Space, o.BucketApart = space, true })
			r.push("a", 0, 10, r.now, 1)
			r.pushLines("a", 0, 3, 2, r.now, plainLine)
			r.must(r.head.Flush(ctx))
			for s := range signals {
				r.must(r.head.sortYoung(ctx, model.Signal(s)))
			}
			windows := partBytes(slices.DeleteFunc(slices.Clone(r.head.snapshot()), func(p *local.Part) bool { return p.Info.Kind != local.Data }))
			r.push("a", 0, 3000, r.now+1, 2)
			r.must(r.head.Flush(ctx))
			// The windows are closed. There is space for their blocks, but not for the young part.
			r.now += int64(3 * time.Hour)
			space.limit = space.used + 2*windows
			if young := partBytes(r.head.group(model.Metrics, local.Data, local.Young)); young <= space.Free() {
				t.Fatalf("%d bytes of young parts fit into %d", young, space.Free())
			}
			if err := ship(r.head); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "no room") {
				t.Errorf("young parts that do not fit: %v", err)
			}
			for s := range signals {
				if left := r.head.groups(model.Signal(s)); len(left) > 0 {
					t.Errorf("%s of signal %d were not shipped", left, s)
				}
			}
			space.limit = 1 << 40
			r.must(r.head.Ship(ctx))
			if left := dataParts(r); len(left) > 0 {
				t.Errorf("%s are left", left)
			}
		})
	}
}

// TestReservationAfterRestart: a start reserves the space of a marked ship before anything is written, so
// that writes cannot take it.
func TestReservationAfterRestart(t *testing.T) {
	for name, again := range map[string]func(*rig){"restart": (*rig).restart, "crash": (*rig).crash} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " apart ", apart), func(t *testing.T) {
				r, b, space := markedRig(t, apart)
				need := space.reserved
				if name == "crash" {
					space.reserved = 0
				}
				again(r)
				if space.reserved != need {
					t.Fatalf("%d bytes are reserved, want %d", space.reserved, need)
				}
				space.used += space.Free() + 1 // also what no reservation has foreseen
				b.fail = nil
				_, err := r.head.Work(context.Background())
				r.must(err)
				if len(b.blocks) != 1 || space.reserved != 0 || len(r.head.merging.reserved) != 0 {
					t.Errorf("%d blocks are in the bucket, %d bytes are reserved", len(b.blocks), space.reserved)
				}
				r.expect("a", 0, 1000, map[int64]float64{r.now: 1})
			})
		}
	}
}

// TestReservationBeyondSpace: a start reserves the space of marked ships even if it is not there. They wait
// for it, one at a time.
func TestReservationBeyondSpace(t *testing.T) {
	ctx := context.Background()
	r, b, space := markedRig(t, true)
	first := space.reserved
	r.push("a", 0, 1000, r.now-int64(12*time.Hour), 2) // late
	if err := r.head.Ship(ctx); err == nil || space.reserved == first {
		t.Fatalf("the bucket was away, and %d bytes are reserved: %v", space.reserved, err)
	}
	both := space.reserved
	room := max(first, both-first)
	r.must(r.head.Close())
	used := space.used
	space.limit = used + min(first, both-first) - 1
	r.open()
	if space.reserved != both {
		t.Fatalf("%d bytes are reserved, want %d", space.reserved, both)
	}
	b.fail = nil
	for range 3 {
		if _, err := r.head.Work(ctx); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "no room") {
			t.Errorf("a ship without space: %v", err)
		}
	}
	if len(b.blocks) != 0 || space.used != used || space.reserved != both {
		t.Fatalf("%d blocks were made without space: %+v", len(b.blocks), *space)
	}
	space.limit = used + room // for each of them, though not for both
	for want := 1; want <= 2; want++ {
		_, err := r.head.Work(ctx)
		if len(b.blocks) != want || (err == nil) != (want == 2) {
			t.Fatalf("%d blocks are in the bucket, want %d: %v", len(b.blocks), want, err)
		}
		space.used = used // the files of the ship are gone
	}
	if space.reserved != 0 {
		t.Errorf("%d bytes are reserved in the end", space.reserved)
	}
	r.expect("a", 0, 1000, map[int64]float64{r.now: 1, r.now - int64(12*time.Hour): 2})
}

// TestOutageBetweenCuts: a ship of several blocks is built once, and counts as a whole.
func TestOutageBetweenCuts(t *testing.T) {
	r, b, made := newAwayRig(t)
	r.head.blockSeries = 20
	r.push("a", 0, 90, r.now, 1)
	failed := 0
	b.fail = func() bool { failed++; return failed >= 3 && failed < 6 }
	for failed < 5 {
		if err := r.head.Ship(context.Background()); err == nil {
			t.Fatal("the bucket was not away")
		}
		r.expect("a", 0, 90, map[int64]float64{r.now: 1})
		if len(b.blocks) > 0 {
			t.Fatalf("%d blocks of a ship that failed are visible", len(b.blocks))
		}
	}
	r.must(r.head.Ship(context.Background()))
	if made() != 5 || len(b.blocks) != 5 || len(b.files) != 5+3+1+1 {
		t.Errorf("%d blocks were made, %d shipped, %d sent", made(), len(b.blocks), len(b.files))
	}
	r.expect("a", 0, 90, map[int64]float64{r.now: 1})
	r.noLeftovers()
}

// TestLongOutage: while the bucket is away for long, finished blocks do not double what the windows take.
func TestLongOutage(t *testing.T) {
	r, b, made := newAwayRig(t)
	r.head.o.WindowBytes = 3000
	rows := map[int64]float64{}
	for i := range 10 {
		at := r.now - int64(i)*int64(5*time.Hour)
		rows[at] = 1
		r.push("a", 0, 200, at, 1)
		r.must(r.head.Flush(context.Background()))
	}
	b.fail = func() bool { return true }
	failed := 0
	for range 12 {
		for more := true; more; {
			var err error
			if more, err = r.head.Work(context.Background()); err != nil {
				failed++
			}
		}
		r.now += int64(3 * time.Hour)
		r.push("a", 0, 200, r.now, 1)
		rows[r.now] = 1
	}
	var bytes int64
	for _, blocks := range r.head.merging.built {
		bytes += blocks[0].Size
	}
	if made() > 3 || failed < 8 || bytes > 2*3000+5000 {
		t.Errorf("%d blocks were made, and %d bytes wait, after %d tries", made(), bytes, failed)
	}
	r.expect("a", 0, 200, rows)
	b.fail = func() bool { return false }
	r.must(r.head.Ship(context.Background()))
	r.expect("a", 0, 200, rows)
	r.noLeftovers()
}

// TestBadBlock: a finished block that the bucket finds damaged is built again, and one whose space is needed
// is deleted.
func TestBadBlock(t *testing.T) {
	r, b, made := newAwayRig(t)
	r.push("a", 0, 50, r.now, 1)
	b.failures = []error{fmt.Errorf("%w: the file does not check out", model.ErrCorrupt)}
	if err := r.head.Ship(context.Background()); err == nil {
		t.Fatal("the block was not refused")
	}
	r.noLeftovers()
	b.failures = away(1)
	if err := r.head.Ship(context.Background()); err == nil {
		t.Fatal("the bucket was not away")
	}
	r.head.dropBuilt()
	r.noLeftovers()
	r.must(r.head.Ship(context.Background()))
	if made() != 3 {
		t.Errorf("the block was made %d times", made())
	}
	r.expect("a", 0, 50, map[int64]float64{r.now: 1})
}

// TestSteppedClock sets the clock forward and back by hours while rows come, with everything that goes by
// time done after each step: nothing is lost, nothing is refused, and every window ends up in the bucket.
func TestSteppedClock(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxFuture = 10 * time.Minute })
	ctx := context.Background()
	rows := map[int64]float64{}
	for i, step := range []time.Duration{
		0, 26 * time.Hour, -26 * time.Hour, -5 * time.Hour, time.Minute, 7 * time.Hour, -3 * time.Hour, 300 * time.Hour, -300 * time.Hour, time.Hour,
	} {
		r.now += int64(step)
		for j := range 12 { // more than gather before they are sorted into windows
			at := r.now - int64(j)*int64(17*time.Minute)
			rows[at] = float64(100*i + j)
			if fresh := r.push("a", 0, 20, at, rows[at]); i > 0 && fresh > 0 {
				t.Fatalf("step %d: %d series are not known any more", i, fresh)
			}
			r.must(r.head.Flush(ctx))
		}
		for more := true; more; {
			var err error
			more, err = r.head.Work(ctx)
			r.must(err)
		}
		r.must(r.head.known.Advance(r.head.idleTicks()))
		r.expect("a", 0, 20, rows)
		if i%3 == 2 {
			r.restart()
			r.expect("a", 0, 20, rows)
		}
	}
	// When the clock has gone on long enough, all of it has been shipped.
	r.now += int64(400 * time.Hour)
	for more := true; more; {
		var err error
		more, err = r.head.Work(ctx)
		r.must(err)
	}
	for _, p := range r.head.snapshot() {
		if p.Info.Kind == local.Data {
			t.Errorf("%s, %s, is still here", p.Info.File, p.Info.Group)
		}
	}
	r.expect("a", 0, 20, rows)
}

// noLeftovers fails if the folder has a file that nothing needs.
func (r *rig) noLeftovers() {
	r.t.Helper()
	names, err := r.mem.List("/head")
	r.must(err)
	for _, name := range names {
		checked := strings.TrimSuffix(name, local.CopySuffix)
		if checked != local.ManifestName && checked != metadata.FileName && !slices.ContainsFunc(r.head.snapshot(), func(p *local.Part) bool { return p.Info.File == name }) {
			r.t.Errorf("%s is left over", name)
		}
	}
}

// TestFewRows: what is too little for a merge reaches the bucket all the same: late rows after their age,
// others when their window has closed.
func TestFewRows(t *testing.T) {
	for name, age := range map[string]time.Duration{"late": 5 * time.Hour, "in time": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			at := r.now - int64(age)
			r.push("a", 0, 3, at, 1)
			r.must(r.head.Flush(context.Background()))
			work := func() {
				for more := true; more; {
					var err error
					more, err = r.head.Work(context.Background())
					r.must(err)
				}
			}
			if work(); len(r.bucket.blocks) != 0 {
				t.Fatal("shipped at once")
			}
			for range 3 {
				r.now += int64(time.Hour)
				work()
				if age > 0 {
					break
				}
			}
			if len(r.bucket.blocks) != 1 || len(r.head.group(model.Metrics, local.Data, local.Young)) != 0 {
				t.Fatalf("%d blocks", len(r.bucket.blocks))
			}
			r.expect("a", 0, 3, map[int64]float64{at: 1})
		})
	}
}
