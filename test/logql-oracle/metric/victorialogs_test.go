package metric

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

var server = flag.String("victorialogs", "", "URL of a running VictoriaLogs, such as http://127.0.0.1:9428; it gets accounts with random numbers")

// TestVictoriaLogs compares random queries over VictoriaLogs, and over Shale's own sources, with Loki's. All
// three have the same lines.
func TestVictoriaLogs(t *testing.T) {
	if *server == "" {
		t.Skip("needs a running VictoriaLogs: -victorialogs URL")
	}
	account := uint32(time.Now().Unix())
	data := logqltest.Datasets(*sets, 120, *seed)
	over, own := map[*logqltest.Dataset]*logql.Engine{}, map[*logqltest.Dataset]*logql.Engine{}
	for i, d := range data {
		id := fmt.Sprintf("%d:%d", account, i)
		d = victorialogstest.AsStored(d)
		data[i] = d
		victorialogstest.Push(t, *server, id, d)
		over[d] = logqltest.Over(victorialogstest.Source(t, victorialogstest.Settings(t, *server, id)))
		own[d] = logqltest.InMemory(d)
	}
	all := ask(t, data, *count)
	for name, engines := range map[string]map[*logqltest.Dataset]*logql.Engine{"VictoriaLogs": over, "Shale's own sources": own} {
		j := judge{t: t}
		j.begin(name)
		for i := range all {
			j.compare(&all[i], logqltest.Run(context.Background(), engines[all[i].data], logqltest.Tenant, &all[i].query))
		}
		j.end(0)
	}
}
