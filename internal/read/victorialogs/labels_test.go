package victorialogs_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

// TestLabels: all labels are found by one list of the streams.
func TestLabels(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, `{"_stream":"{app=\"web\",pod=\"2\"}"}`+"\n"+`{"_stream":"{app=\"web\",pod=\"1\"}"}`+"\n"+`{"_stream":"{env=\"x\"}"}`+"\n")
	}))
	defer server.Close()
	q := read.New(read.Options{Sources: []read.Source{victorialogstest.Source(t, victorialogstest.Settings(t, server.URL, "0:0"))}})
	got, err := q.Labels(context.Background(), &model.Request{
		Tenant: logqltest.Tenant, Signal: model.Logs, Family: model.Text, Range: model.TimeRange{Min: 1e18, Max: 1e18 + 1e9},
	})
	want := map[string][]string{"app": {"web"}, "env": {"x"}, "pod": {"1", "2"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}
