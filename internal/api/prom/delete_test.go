package prom_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/api/prom"
)

// TestDeleteSeries checks what requests ask for, and Prometheus' texts.
func TestDeleteSeries(t *testing.T) {
	var asked []string
	cleaned := 0
	w := newWorld(t, func(o *prom.Options) {
		o.Delete = func(_ context.Context, tenant string, ms []*labels.Matcher, start, end int64) error {
			asked = append(asked, fmt.Sprint(tenant, " ", ms, " ", start, " ", end))
			return nil
		}
		o.Clean = func() { cleaned++ }
	})
	for _, root := range []string{"", "/prometheus"} {
		for _, test := range []struct {
			method string
			params []string
			want   string
		}{
			{http.MethodPost, []string{"match[]=up", "match[]={job=~\"a|b\"}", "start=1", "end=2.5"}, `204 anonymous [__name__="up"] 1000000000 2500999999, anonymous [job=~"a|b"] 1000000000 2500999999`},
			{http.MethodPut, []string{"match[]=up"}, fmt.Sprintf(`204 anonymous [__name__="up"] %d %d`, math.MinInt64, math.MaxInt64)},
			{http.MethodPost, nil, `400 {"status":"error","errorType":"bad_data","error":"no match[] parameter provided"}`},
			{http.MethodPost, []string{"match[]=up", "start=x"}, `400 {"status":"error","errorType":"bad_data","error":"invalid parameter \"start\": invalid time value for 'start': cannot parse \"x\" to a valid timestamp"}`},
			{http.MethodPost, []string{"match[]=up{"}, `400 {"status":"error","errorType":"bad_data","error":"invalid parameter \"match[]\": `},
			{http.MethodPost, []string{"match[]=up", "start=2", "end=1"}, `400 {"status":"error","errorType":"bad_data","error":"invalid parameter \"end\": end timestamp must not be before start time"}`},
			{http.MethodGet, []string{"match[]=up"}, "405 "},
		} {
			asked = nil
			res := w.Do(test.method, root+"/api/v1/admin/tsdb/delete_series", test.params, nil)
			got := fmt.Sprint(res.Code, " ", res.Body, strings.Join(asked, ", "))
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("%s %s %v:\n got %s\nwant %s", root, test.method, test.params, got, test.want)
			}
		}
		if res := w.Do(http.MethodPost, root+"/api/v1/admin/tsdb/clean_tombstones", nil, nil); res.Code != http.StatusNoContent {
			t.Error(res.Code, res.Body)
		}
	}
	if cleaned != 2 {
		t.Errorf("compaction was asked for %d times", cleaned)
	}
}
