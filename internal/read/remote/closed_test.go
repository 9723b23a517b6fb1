package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/remote"
)

// TestClosedJournal: a holder has not heard that its journal is closed. No query asks it, whether or not it
// has shipped some of the journal, and none is refused. The same goes for a journal that the log does not
// name at all, unless it is of a later epoch than the log knows.
func TestClosedJournal(t *testing.T) {
	s := newSetup(t)
	t.Cleanup(s.close)
	for i := range 40 {
		s.push(&worldtest.Batch{Tenant: "a", Signal: model.Metrics, Series: []worldtest.Series{{
			Labels: model.LabelsOf("__name__", "m", "i", string(rune('a'+i))), Rows: []worldtest.Row{worldtest.Float(now-int64(time.Second), 1)},
		}}})
	}
	count := func(of []remote.Progress) int {
		t.Helper()
		o := s.options
		o.Log = &log{of: of}
		far := remote.New(o)
		defer far.Close()
		got, err := dump(read.New(read.Options{Sources: []read.Source{far}}), &model.Request{Tenant: "a", Signal: model.Metrics, Range: model.Always()})
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return strings.Count(got, "\n\t")
	}
	open := s.progress(0)
	all := count(open)
	closed := s.progress(0)
	closed[0].Closed, closed[0].Covered = true, closed[0].End
	rest := count(closed)
	if all != 40 || rest >= all || rest == 0 {
		t.Errorf("%d series of all journals, and %d once one is closed", all, rest)
	}
	if n := count(open[1:]); n != rest {
		t.Errorf("%d series without a journal that the log does not name, expected %d", n, rest)
	}
	earlier := s.progress(0)[1:]
	for i := range earlier {
		earlier[i].Epoch--
		earlier[i].Closed = true
	}
	if n := count(earlier); n != all {
		t.Errorf("%d series of a later epoch than the log knows, expected %d", n, all)
	}
	s.parts[0].from = 4 // it has shipped some itself
	if n := count(closed); n != rest {
		t.Errorf("%d series, expected %d", n, rest)
	}
}
