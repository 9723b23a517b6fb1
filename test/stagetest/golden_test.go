package stagetest

import (
	"context"
	"flag"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/api/loki/lokitest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/test/objectstores"
	"github.com/shaledb/shale/test/tiertest"
)

var (
	storeName = flag.String("store", "", "the object store of test/objectstores that has the lines; empty: a folder")
	tierNames = flag.String("tiers", "", "the caches of test/tiers that queries go through, such as small+ssd+memcached; empty: memory")
)

// TestResults compares results of queries with those of Loki, at each stage.
func TestResults(t *testing.T) {
	places, caches := objectstores.NewPlaces(t, *storeName), tiertest.Start(t, *tierNames)
	files, err := filepath.Glob("../../internal/read/logql/logqltest/testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			records, err := logqltest.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			var data []*logqltest.Dataset
			known := map[string]bool{}
			for i := range records {
				if d := records[i].Data; !known[d.Name] {
					known[d.Name] = true
					data = append(data, d)
				}
			}
			Each(t, places, caches, logqltest.Begin+3*logqltest.Span, Datasets(data), func(t *testing.T, s *Store) {
				for i := range records {
					r := &records[i]
					for range 2 { // the second time from kept results
						got := logqltest.Run(context.Background(), s.LogQL, r.Data.Name, &r.Query)
						if d := logqltest.Diff(r.Loki, got, strings.Contains(r.Query.Text, "sort")); d != "" {
							t.Errorf("%s: %s: %s\n%s", r.Data.Name, r.Query.String(), d, got)
						}
					}
				}
			})
		})
	}
}

// TestResponses compares responses of the API with those of Loki, at each stage.
func TestResponses(t *testing.T) {
	places, caches := objectstores.NewPlaces(t, *storeName), tiertest.Start(t, *tierNames)
	for _, suite := range lokitest.Suites() {
		suite.Store = namesOfOtherTimes
		t.Run(suite.Name, func(t *testing.T) {
			recording := suite.Read(t)
			all := suite.Lines(recording.At)
			lines := func(s *Store, i, n int) error {
				for _, tenant := range lokitest.Tenants() {
					in := worldtest.Batch{Tenant: tenant, Signal: model.Logs}
					for _, l := range all[len(all)*i/n : len(all)*(i+1)/n] {
						row := worldtest.LineRow(l.Time, &model.Line{Text: []byte(l.Text), Metadata: l.Metadata})
						in.Series = append(in.Series, worldtest.Series{Labels: l.Labels, Rows: []worldtest.Row{row}})
					}
					if err := s.Push(&in); err != nil {
						return err
					}
				}
				return nil
			}
			now := time.Unix(recording.At+100, 0)
			Each(t, places, caches, now.UnixNano(), lines, func(t *testing.T, s *Store) {
				h := loki.New(loki.Options{Engine: s.LogQL, Options: api.Options{Now: func() time.Time { return now }, Registerer: prometheus.NewRegistry()}})
				mux := http.NewServeMux()
				h.Routes(mux)
				suite.Compare(t, recording, mux)
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// namesOfOtherTimes are requests for labels at a time without lines. The head answers with what it knows.
func namesOfOtherTimes(r *lokitest.Request) string {
	switch path.Base(r.Path) {
	case "labels", "label", "values", "detected_labels":
		if r.Params.Get("end") == "2000" && r.Status == http.StatusOK && !strings.Contains(r.Path, "none") {
			return "labels may be those of other times"
		}
	}
	return ""
}
