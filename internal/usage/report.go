package usage

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/dayfile"
	"github.com/shaledb/shale/internal/model"
)

// Total is what a tenant has used on some days.
type Total struct {
	Tenant string `json:"tenant"`
	Usage
	// SeriesDays and StoredByteDays are the sums of the series and of the stored bytes over the days.
	SeriesDays     int64 `json:"seriesDays"`
	StoredByteDays int64 `json:"storedByteDays"`
	// CacheShare is the tenant's part of all pages that queries found in caches.
	CacheShare float64 `json:"cacheShare"`
	Dollars    float64 `json:"dollars"`
}

// Report is what tenants have used.
type Report struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Days are the days between with accounts.
	Days int `json:"days"`
	// Tenants come in the order of their cost, greatest first, then by name.
	Tenants []Total `json:"tenants"`
}

// Report returns what tenants have used, by the parameters from, to and tenant. Without days it is today. An
// error of class invalid is about the parameters.
func (l *Ledger) Report(ctx context.Context, form url.Values) (*Report, error) {
	today := dayfile.Day(l.o.Now())
	to := cmp.Or(form.Get("to"), today)
	from := cmp.Or(form.Get("from"), to)
	for name, day := range map[string]string{"from": from, "to": to} {
		if _, err := dayfile.Parse(day); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if from > to {
		return nil, fmt.Errorf("%w: from: %s is after %s", model.ErrInvalid, from, to)
	}
	r := &Report{From: from, To: to, Tenants: []Total{}}
	totals := map[string]*Total{}
	if err := l.each(ctx, from, to, func(day map[string]Usage) {
		r.Days++
		for name, u := range day {
			t := totals[name]
			if t == nil {
				t = &Total{Tenant: shown(name)}
				totals[name] = t
			}
			t.add(&u)
			t.SeriesDays += u.Series
			t.StoredByteDays += u.StoredBytes
			t.Series, t.StoredBytes = max(t.Series, u.Series), u.StoredBytes
		}
	}); err != nil {
		return nil, err
	}
	cached := int64(0)
	for _, t := range totals {
		cached += t.PagesCached
	}
	only := form.Get("tenant")
	for name, t := range totals {
		t.CacheShare = float64(t.PagesCached) / float64(max(1, cached))
		t.Dollars = float64(l.o.Prices.Cost(t, &l.o.Reads))
		if only == "" || only == name {
			r.Tenants = append(r.Tenants, *t)
		}
	}
	slices.SortFunc(r.Tenants, func(a, b Total) int {
		return cmp.Or(cmp.Compare(b.Dollars, a.Dollars), cmp.Compare(b.Samples+b.Lines, a.Samples+a.Lines), strings.Compare(a.Tenant, b.Tenant))
	})
	return r, nil
}

// shown returns the name that a report has for an account.
func shown(name string) string {
	if name == others {
		return Others
	}
	return name
}

// each calls do with the accounts of each day, oldest first.
func (l *Ledger) each(ctx context.Context, from, to string, do func(map[string]Usage)) error {
	l.mu.Lock()
	l.turnLocked(dayfile.Day(l.o.Now()))
	today, day := l.copyLocked(), l.day
	over, overDay := l.over, l.overDay
	l.mu.Unlock()
	var kept []string
	if l.o.Dir != "" {
		var err error
		if kept, err = l.folder.List(); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, d := range kept {
		if d < from || d > to || d >= day || d == overDay && over != nil {
			continue
		}
		of, err := l.load(d)
		if err != nil {
			return err
		}
		do(of)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if over != nil && from <= overDay && overDay <= to {
		do(over)
	}
	if from <= day && day <= to {
		do(today)
	}
	return nil
}

// CSV writes the report as a table with a header.
func (r *Report) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"tenant", "samples", "lines", "line_bytes", "write_requests", "write_bytes", "queries", "bucket_requests", "bytes_read",
		"pages_cached", "pages_bucket", "series", "stored_bytes", "series_days", "stored_byte_days", "cache_share", "dollars"}}
	for i := range r.Tenants {
		t := &r.Tenants[i]
		row := []string{t.Tenant}
		for _, n := range []int64{t.Samples, t.Lines, t.LineBytes, t.WriteRequests, t.WriteBytes, t.Queries, t.BucketRequests, t.BytesRead,
			t.PagesCached, t.PagesBucket, t.Series, t.StoredBytes, t.SeriesDays, t.StoredByteDays} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		for _, f := range []float64{t.CacheShare, t.Dollars} {
			row = append(row, strconv.FormatFloat(f, 'f', 6, 64))
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}
