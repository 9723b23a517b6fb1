package compact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/retention"
)

func rulesOf(t *testing.T, rest time.Duration, text string) *retention.Rules {
	t.Helper()
	var l retention.List
	if err := l.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	r, err := retention.Compile(l, rest)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// aDayOf ships a day with a row an hour of two metrics.
func (w *world) aDayOf(t *testing.T, tenants ...string) {
	t.Helper()
	s := w.shipment()
	for hour := range int64(24) {
		for _, tenant := range tenants {
			for i := range 2 {
				s.addFloat(tenant, labelsOf(i), w.now+hour*int64(time.Hour), uint64(hour))
			}
		}
	}
	s.ship(t)
	w.now += int64(day) + int64(2*time.Hour)
}

func (w *world) groupsOf() string {
	var all []string
	for _, b := range w.c.Live() {
		keep, _, _ := strings.Cut(b.Group, ".")
		all = append(all, fmt.Sprintf("%s:%d", keep, b.Samples))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestExpiredSeries: a block that was made by other rules is rewritten once some of its series have expired,
// and is looked at once only.
func TestExpiredSeries(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = 20_000 * int64(day)
	w.aDayOf(t, "a", "b")
	run := func(c *Compactor, want string) {
		t.Helper()
		if _, err := c.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		if got := w.groupsOf(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	run(w.compactor(t, w.c, nil), "default:96")
	rules := rulesOf(t, 9*day, `[{tenant: a, match: m1, keep: 2d}, {match: none, keep: 1d}]`)
	c := w.compactor(t, w.c, func(o *Options) { o.Retention = func() *retention.Rules { return rules } })
	// A row of today says that time has passed.
	late := func() {
		s := w.shipment()
		s.addFloat("c", labelsOf(0), w.now, 1)
		s.ship(t)
	}
	w.now += int64(day)
	late()
	run(c, "default:1 default:96") // a series could have expired, and none has
	if len(c.keeps) != 1 {
		t.Errorf("%d blocks were looked at", len(c.keeps))
	}
	w.now += int64(day)
	late()
	run(c, "9d:1 9d:72 default:1")
	for _, b := range w.c.Live() {
		if Expired(rules, &b, w.now) {
			t.Errorf("%s counts as expired", b.ID)
		}
		if !Expired(rules, &b, w.now+int64(12*day)) {
			t.Errorf("%s never expires", b.ID)
		}
	}
}

// TestInspectRetention counts the rows of each rule in a block that several share.
func TestInspectRetention(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.plantSeed(t)
	w.now = 20_000 * int64(day)
	begin := w.now
	w.aDayOf(t, "a", "b", "audit")
	o := RetentionOptions{Rules: rulesOf(t, 30*day, `[{tenant: "[ab]", match: m1, keep: 3d}, {tenant: audit, keep: 0}]`), JSON: true, Now: w.now + int64(9*day)}
	var out bytes.Buffer
	if err := InspectRetention(ctx, &out, w.bucket, o); err != nil {
		t.Fatal(err)
	}
	var got []RuleUsage
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 3 {
		t.Fatal(out.String(), err)
	}
	size := w.c.Live()[0].Bytes
	for i, want := range []RuleUsage{
		{Rows: 48, Bytes: size / 3, ExpiredBytes: size / 3, AllGone: instant(begin + int64(23*time.Hour+3*day))},
		{Rows: 48, Bytes: size / 3, AllGone: "never"},
		{Rows: 48, Bytes: size / 3, AllGone: instant(begin + int64(23*time.Hour+30*day))},
	} {
		u := got[i]
		if u.Number != i+1 || u.Blocks != 1 || u.Rows != want.Rows || u.Bytes != want.Bytes || u.ExpiredBytes != want.ExpiredBytes ||
			u.Oldest != instant(begin) || u.AllGone != want.AllGone || u.NextGone != want.AllGone {
			t.Errorf("rule %d: %+v, want %+v", i+1, u, want)
		}
	}
	o.JSON, o.Tenant = false, "b"
	out.Reset()
	if err := InspectRetention(ctx, &out, w.bucket, o); err != nil || strings.Count(out.String(), "\n") != 4 || !strings.Contains(out.String(), "m1") {
		t.Error(out.String(), err)
	}
	// A block that cannot be read is named, and the others are counted.
	id := w.c.Live()[0].ID
	if err := w.bucket.Delete(ctx, "blocks/"+id); err != nil {
		t.Fatal(err)
	}
	if err := InspectRetention(ctx, &out, w.bucket, o); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("a missing block: %v", err)
	}
}

// TestKeptForever: without rules nothing expires.
func TestKeptForever(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = 20_000 * int64(day)
	w.aDayOf(t, "a")
	b := w.c.Live()[0]
	if Expired(nil, &b, w.now+int64(100*365*day)) || model.Always().Max <= ExpiryTime(nil, 0) {
		t.Error("a block has expired")
	}
}
