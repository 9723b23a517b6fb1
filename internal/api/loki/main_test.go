package loki

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/readtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an API over a store in memory.
type world struct {
	*apitest.API
	memory store
	reg    *prometheus.Registry
}

// newWorld builds an API, whose time is 1000 seconds; change may change its options before.
func newWorld(t testing.TB, change func(*Options)) *world {
	t.Helper()
	w := &world{memory: store{readtest.NewMemory(1)}, reg: prometheus.NewRegistry()}
	now := func() time.Time { return time.Unix(1000, 0) }
	o := Options{
		Engine: logql.New(logql.Options{Read: read.New(read.Options{Sources: []read.Source{w.memory}}), Workers: 2, Now: now}),
		Options: api.Options{
			Version:    api.Version{Version: "1.2.3", Revision: "r", Branch: "b", BuildUser: "u", BuildDate: "d", GoVersion: "g"},
			Now:        now,
			Registerer: w.reg,
		},
	}
	if change != nil {
		change(&o)
	}
	h := New(o)
	w.API = apitest.Serve(t, h.Routes, w.memory, h.Close)
	return w
}

// store is a store in memory.
type store struct{ *readtest.Memory }

// Load adds a line: {labels} seconds {metadata} text, of which the metadata may be left out, and text may be
// quoted.
func (s store) Load(tenant, line string) error {
	labels, line, err := cutLabels(line)
	if err != nil {
		return err
	}
	at, line, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseFloat(at, 64)
	if err != nil {
		return err
	}
	l := readtest.Line{Time: int64(seconds*1000) * 1e6}
	if strings.HasPrefix(line, "{") && strings.Contains(line, "} ") {
		if l.Metadata, line, err = cutLabels(line); err != nil {
			return err
		}
	}
	if l.Text = line; strings.HasPrefix(line, `"`) {
		if l.Text, err = strconv.Unquote(line); err != nil {
			return err
		}
	}
	s.AddText(tenant, labels.Key(7, model.Logs), labels, l)
	return nil
}

// cutLabels reads {a="b"} from the beginning of a text.
func cutLabels(text string) (model.Labels, string, error) {
	labels, rest, _ := strings.Cut(text, "} ")
	ms, err := syntax.ParseMatchers(labels+"}", true)
	if err != nil {
		return nil, "", err
	}
	var pairs []string
	for _, m := range ms {
		pairs = append(pairs, m.Name, m.Value)
	}
	return model.LabelsOf(pairs...), rest, nil
}
