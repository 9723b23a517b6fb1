package victorialogs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

// TestExplain: a query that is explained says where its parts run, and asks the server nothing.
func TestExplain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server is asked") }))
	defer server.Close()
	e := logqltest.Over(victorialogstest.Source(t, victorialogstest.Settings(t, server.URL, "1")))
	for _, test := range []struct{ query, want string }{
		{`{app="web", env=~"a|b", pod=~"p.*", trace_id!="x", pod_name="p"} |= "time out" | json`,
			`app="web" pushed; env=~"a|b" pushed; pod=~"p.*" partial; trace_id!="x" local; pod_name="p" partial; line contains "time out" partial; lines local`},
		{`sum by (app) (count_over_time({app="web"}[5m]))`, `app="web" pushed; windows partial`},
	} {
		p, err := logql.Prepare(test.query)
		if err != nil {
			t.Fatal(err)
		}
		cost := &model.Cost{Bill: new(model.Bill)}
		if p.WantsLines() {
			_, err = e.Lines(context.Background(), &logql.Query{Tenants: []string{logqltest.Tenant}, Prepared: p, Start: 0, End: 1e12, Cost: cost})
		} else {
			_, err = e.Numbers(context.Background(), &logql.MetricQuery{
				Tenants: []string{logqltest.Tenant}, Prepared: p, Steps: vector.Steps{Start: 1e12, Step: 60e9, Count: 10}, Cost: cost,
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range cost.Bill.Placed() {
			got = append(got, fmt.Sprint(x.Part, " ", x.Where))
			if x.Reason == "" || x.Source != "victorialogs" {
				t.Errorf("%+v", x)
			}
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.query, text, test.want)
		}
	}
}
