package victorialogs_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

var (
	realServer = flag.String("victorialogs", "", "URL of a running VictoriaLogs, such as http://127.0.0.1:9428, for TestDifferential; it gets accounts with random numbers. Empty: the test is left out")
	sets       = flag.Int("sets", 20, "data sets of TestDifferential")
	queries    = flag.Int("queries", 2000, "random queries of TestDifferential")
	seed       = flag.Uint64("seed", 1, "seed of TestDifferential")
	written    = flag.Bool("written", false, "run the written queries of TestDifferential over every data set, not over the first only")
	mostLines  = flag.Int("lines", 200, "most lines of a data set of TestDifferential")
)

// TestDifferential compares queries over a real VictoriaLogs with the same queries over Shale's own sources,
// with the same lines.
func TestDifferential(t *testing.T) {
	if *realServer == "" {
		t.Skip("needs a running VictoriaLogs: -victorialogs URL")
	}
	data := logqltest.Datasets(*sets, *mostLines, *seed)
	account := uint32(time.Now().Unix())
	g := logqltest.Generator{R: rand.New(rand.NewPCG(*seed, 3))}
	same, some, errs, different, grouped, joined := 0, 0, 0, 0, 0, 0
	for i, d := range data {
		id := fmt.Sprintf("%d:%d", account, i)
		d = victorialogstest.AsStored(d)
		victorialogstest.Push(t, *realServer, id, d)
		from := source(t, *realServer, id, i, 10*time.Second) // queries share lists of streams
		theirs, ours := logqltest.Over(from), logqltest.InMemory(d)
		all := groupQueries()
		if *written || i == 0 {
			all = append(all, logqltest.Written(d)...)
		}
		for range *queries / *sets {
			all = append(all, g.Query(d))
		}
		for _, q := range all {
			want := logqltest.Run(context.Background(), ours, logqltest.Tenant, &q)
			got := logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q)
			diff := logqltest.Diff(want, got, strings.Contains(q.Text, "sort"))
			switch {
			case diff != "":
				if different++; different <= 10 {
					t.Errorf("%s: %s\n%s", d.Name, q.String(), diff)
				}
				continue
			case want.Error != "":
				errs++
			case !want.Empty():
				some++
			}
			same++
		}
		all = jointQueries()
		got := atOnce(theirs, all)
		for k := range all {
			want := logqltest.Run(context.Background(), ours, logqltest.Tenant, &all[k])
			if diff := logqltest.Diff(want, got[k], false); diff != "" {
				different++
				t.Errorf("%s: %s with others\n%s", d.Name, all[k].String(), diff)
			}
		}
		grouped, joined = grouped+victorialogs.Grouped(from), joined+victorialogs.Joined(from)
	}
	t.Logf("%d queries are the same (%d with a result, %d with the same error), %d are different; %d requests were for groups of streams, and %d had one in common", same, some, errs, different, grouped, joined)
	if joined == 0 && len(data) > 0 {
		t.Error("no two queries of one time had a request in common")
	}
	if some < same/2 {
		t.Errorf("only %d of %d queries have a result", some, same)
	}
}

// jointQueries are queries that count lines in the same cells, so that those of one time have a request in
// common.
func jointQueries() (all []logqltest.Query) {
	for _, text := range []string{
		`sum(count_over_time({app="web"}[1m]))`, `sum by (app) (rate({app!="web"}[1m]))`, `sum by (pod) (bytes_rate({app=~"db|web"}[1m]))`,
		`sum(count_over_time({env=~".+"}[1m]))`, `sum by (env) (count_over_time({app=~"w.*", env!=""}[1m]))`, `sum(count_over_time({app="web", env="prod"}[1m]))`,
		`count_over_time({app="none"}[1m])`, `sum by (app) (bytes_over_time({app!~"d.+"}[1m]))`, `sum(rate({service_name!="", app!=""}[1m]))`,
	} {
		all = append(all, logqltest.Query{Text: text, Start: logqltest.Begin, End: logqltest.Begin + logqltest.Span, Step: 60_000_000_000})
	}
	return all
}

// atOnce runs queries at one time.
func atOnce(e *logql.Engine, all []logqltest.Query) []*logqltest.Result {
	out := make([]*logqltest.Result, len(all))
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { out[i] = logqltest.Run(context.Background(), e, logqltest.Tenant, &all[i]) })
	}
	running.Wait()
	return out
}

// source returns a source over an account of a server. Those of every other data set group streams wherever
// that is right, and not only where it is quicker. Half of these count lines by groups at once.
func source(t *testing.T, server, id string, set int, checkEvery time.Duration) *victorialogs.Source {
	settings := victorialogstest.Settings(t, server, id)
	settings.CheckEvery = checkEvery
	s := victorialogstest.Source(t, settings)
	if set%4 == 3 {
		victorialogs.GroupFirst(s)
	}
	if set%2 == 1 {
		return victorialogs.GroupAlways(s)
	}
	return s
}
