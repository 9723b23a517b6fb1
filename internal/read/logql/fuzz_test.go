package logql

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// FuzzQuery runs any text over a small world: it is answered or refused, with an error of a class that says
// whose fault it is.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		`{app="web"}`, `{app=~".+"} |= "GET" | json | logfmt`, `{app="web"} | trace="t1"`, `{app="web"} |~ "G(E|e)T" != "x"`,
		`{app="web"} | pattern "<m> <p>" | m="GET" | line_format "{{.p | trunc 3}}"`, `{app="web"} | label_format a="{{.zone}}" | drop zone`,
		`{app="web"} | regexp "(?P<m>\\w+)" | keep m`, `{app=~"w.*", __tenant_id__="a"} |> "GET <_>"`, `{app="web"} | decolorize | unpack`,
		`{app="web"} |= ip("10.0.0.0/8")`, `rate({app="web"}[5m])`, `{app="web"} | __error__ != ""`, `{`, `{app=~".*"}`,
	} {
		f.Add(s, 3, true)
		f.Add(s, 0, false)
	}
	_, e := shop()
	f.Fuzz(func(t *testing.T, text string, limit int, backward bool) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		p, err := Prepare(text)
		if err != nil {
			if !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrLimit) {
				t.Errorf("%v", err)
			}
			return
		}
		q := &Query{
			Tenants: []string{"a", "b", "c"}, Prepared: p, End: 100, Limit: max(limit, 0),
			Quota: &model.Quota{MaxBytes: 64 << 20}, Cost: &model.Cost{},
		}
		if !backward {
			q.Direction = Forward
		}
		got, err := e.Lines(ctx, q)
		switch {
		case err == nil:
			if q.Limit > 0 && got.Stats.Entries > int64(q.Limit) {
				t.Errorf("%d entries", got.Stats.Entries)
			}
		case !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrLimit):
			t.Errorf("%v", err)
		}
	})
}
