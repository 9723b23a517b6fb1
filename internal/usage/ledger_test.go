package usage

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLedger(t *testing.T) {
	mem, now := vfs.NewCrashableMem(), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	open := func() *Ledger {
		return Open(Options{
			FS: mem, Dir: "/usage", Now: func() int64 { return now.UnixNano() }, Registerer: prometheus.NewRegistry(),
			Prices: Prices{Samples: 2, Lines: 3, Series: 5, Stored: 30}, Reads: bill.Prices{Requests: 7, Bytes: 11},
			Holdings: func(_ context.Context, tenants []string) (map[string]Holding, error) {
				return map[string]Holding{"a": {Series: 1000, StoredBytes: 1e9}}, nil
			},
		})
	}
	report := func(l *Ledger, form string) *Report {
		t.Helper()
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Report(context.Background(), values)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	l := open()
	l.Stored("a", 1e6, 0, 0)
	l.Stored("b", 0, 10, 1e9)
	l.Wrote("a", 100)
	l.Queried("a")
	l.Queried("unknown")
	l.Read("a", 1e6, 1e9, 30, 5)
	l.Read("b", 0, 0, 10, 0)
	l.Save(context.Background())
	if got := testutil.ToFloat64(l.metrics.dollars.WithLabelValues("a")); got != 2+5+1+7+11 {
		t.Errorf("today a costs %v", got)
	}
	l.Save(context.Background()) // with what the tenants hold
	mem = mem.CrashClone(vfs.CrashCloneCfg{})
	l = open()
	l.Stored("a", 1e6, 0, 0)
	now = now.AddDate(0, 0, 1)
	l.Stored("a", 1e6, 0, 0)
	for range 2 { // with the day before in memory, and in its file
		r := report(l, "from=2026-11-01&to=2026-11-30")
		want := Total{
			Tenant: "a", Usage: Usage{Samples: 3e6, WriteRequests: 1, WriteBytes: 100, Queries: 1, BucketRequests: 1e6, BytesRead: 1e9, PagesCached: 30, PagesBucket: 5, Series: 1000, StoredBytes: 1e9},
			SeriesDays: 1000, StoredByteDays: 2e9, CacheShare: .75, Dollars: 6 + 5 + 2 + 7 + 11,
		}
		if l.over == nil { // Save has looked at the series of today
			want.SeriesDays, want.Dollars = 2000, want.Dollars+5
		}
		if r.Days != 2 || len(r.Tenants) != 3 || !reflect.DeepEqual(r.Tenants[0], want) || r.Tenants[1].Tenant != "b" || r.Tenants[1].Dollars != 3 ||
			r.Tenants[2].Tenant != Others || r.Tenants[2].Queries != 1 {
			t.Errorf("%+v\nwant %+v", r, want)
		}
		l.Save(context.Background())
	}
	if r := report(l, "tenant=b&from=2026-11-25&to=2026-11-25"); len(r.Tenants) != 1 || r.Tenants[0].LineBytes != 1e9 {
		t.Errorf("%+v", r)
	}
	if r := report(l, ""); r.From != "2026-11-26" || r.Days != 1 || r.Tenants[0].Samples != 1e6 {
		t.Errorf("today: %+v", r)
	}
	var text strings.Builder
	if err := report(l, "").CSV(&text); err != nil {
		t.Fatal(err)
	}
	if rows, err := csv.NewReader(strings.NewReader(text.String())).ReadAll(); err != nil || rows[1][0] != "a" || rows[1][1] != "1000000" || len(rows[0]) != len(rows[1]) {
		t.Errorf("%v, %v", rows, err)
	}
	for _, bad := range []url.Values{{"from": {"now"}}, {"to": {"../x"}}, {"from": {"2026-11-26"}, "to": {"2026-11-25"}}} {
		if _, err := l.Report(context.Background(), bad); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// A hundred thousand names take bounded memory, and nothing of what they use is lost.
func TestLedgerIsBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC).UnixNano()
	l := Open(Options{Registerer: reg, Now: func() int64 { return noon }})
	var done sync.WaitGroup
	for g := range 4 {
		done.Go(func() {
			for i := range 25_000 {
				name := fmt.Sprint("t", g*25_000+i)
				l.Queried(name)
				if i < 5000 {
					l.Stored(name, 1, 0, 0)
				}
			}
		})
	}
	done.Wait()
	l.Save(context.Background())
	if len(l.tenants) > maxTenants+1 {
		t.Errorf("%d accounts", len(l.tenants))
	}
	r, err := l.Report(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	queries, samples := int64(0), int64(0)
	for _, x := range r.Tenants {
		queries, samples = queries+x.Queries, samples+x.Samples
	}
	if queries != 100_000 || samples != 20_000 {
		t.Errorf("%d queries, %d samples", queries, samples)
	}
	if n := testutil.CollectAndCount(l.metrics.dollars); n > maxShown+1 {
		t.Errorf("%d series of metrics", n)
	}
}

// days opens ledgers at noon of days, and reads what their files have.
type days struct {
	t   *testing.T
	mem vfs.FS
	now time.Time
}

func newDays(t *testing.T) *days {
	return &days{t, vfs.NewMem(), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
}

func (d *days) open(holdings func(context.Context, []string) (map[string]Holding, error)) *Ledger {
	return Open(Options{FS: d.mem, Dir: "/usage", Now: func() int64 { return d.now.UnixNano() }, Registerer: prometheus.NewRegistry(), Holdings: holdings})
}

func (d *days) file(l *Ledger, day string) map[string]Usage {
	d.t.Helper()
	all, err := l.load(day)
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

func TestADayThatIsOverStaysSo(t *testing.T) {
	d := newDays(t)
	l := d.open(nil)
	l.Stored("a", 5, 0, 0)
	l.Save(context.Background())
	d.now = d.now.AddDate(0, 0, 1)
	l.Stored("a", 7, 0, 0)
	d.now = d.now.AddDate(0, 0, -1) // the clock steps back, or a writer has looked at it before midnight
	l.Stored("a", 1, 0, 0)
	l.Stored("b", 1, 0, 0)
	l.Save(context.Background())
	if got := d.file(l, "2026-11-25")["a"].Samples; got != 5 {
		t.Errorf("the day before has %d samples", got)
	}
	if got := d.file(l, "2026-11-26"); got["a"].Samples != 8 || got["b"].Samples != 1 {
		t.Errorf("the day after: %+v", got)
	}
}

// Tenants that only store keep their accounts when the first start of a day is not at its beginning.
func TestADayBeginsWithWhatIsStored(t *testing.T) {
	d := newDays(t)
	asked := []string{}
	holdings := func(_ context.Context, tenants []string) (map[string]Holding, error) {
		asked = tenants
		return map[string]Holding{"a": {StoredBytes: 100}}, nil
	}
	l := d.open(holdings)
	l.Stored("a", 5, 0, 0)
	l.Queried("stranger")
	l.Save(context.Background())
	l.Save(context.Background())
	d.now = d.now.AddDate(0, 0, 3)
	l = d.open(holdings)
	if l.Save(context.Background()); !reflect.DeepEqual(asked, []string{"a"}) {
		t.Errorf("looked for what %q hold", asked)
	}
	if got := d.file(l, "2026-11-28"); !reflect.DeepEqual(got, map[string]Usage{"a": {StoredBytes: 100}}) {
		t.Errorf("%+v", got)
	}
}

// What is known of holdings counts in spite of an error, and counts are in their file before anybody looks.
func TestHoldingsWithAnError(t *testing.T) {
	d := newDays(t)
	var l *Ledger
	stored := int64(100)
	l = d.open(func(context.Context, []string) (map[string]Holding, error) {
		if got := d.file(l, "2026-11-25")["a"].Samples; got != 5 {
			t.Errorf("%d samples are saved", got)
		}
		return map[string]Holding{"a": {Series: 100 - stored, StoredBytes: stored}}, errors.New("the bucket is slow")
	})
	l.Stored("a", 5, 0, 0)
	l.Save(context.Background())
	stored = -1 // not known
	l.Save(context.Background())
	if got := l.tenants["a"].Usage; got.Series != 101 || got.StoredBytes != 100 {
		t.Errorf("%+v", got)
	}
}

// A tenant with the name that is shown for all others is not all others.
func TestTenantNamedOther(t *testing.T) {
	if model.CheckTenant(others) == nil || model.CheckTenant(Others) != nil {
		t.Error("a tenant can have the name of the account of all others")
	}
	d := newDays(t)
	l := d.open(nil)
	l.Stored(Others, 1, 0, 0)
	l.Save(context.Background())
	l = d.open(nil) // with a file without others
	l.Queried("stranger")
	l.Queried(Others)
	l.Queried(Others)
	l.Save(context.Background())
	l = d.open(nil)
	r, err := l.Report(context.Background(), url.Values{"tenant": {Others}})
	if err != nil || len(r.Tenants) != 1 || r.Tenants[0].Samples != 1 || r.Tenants[0].Queries != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = l.Report(context.Background(), nil)
	if err != nil || len(r.Tenants) != 2 || r.Tenants[1].Tenant != Others || r.Tenants[1].Queries != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	// An older file.
	d.now = d.now.AddDate(0, 0, 1)
	if err := l.folder.Save("2026-11-26", map[string]Usage{Others: {Queries: 9}}); err != nil {
		t.Fatal(err)
	}
	if l = d.open(nil); l.tenants[Others] != nil || l.tenants[others].Queries != 9 {
		t.Errorf("%v", l.tenants)
	}
}
