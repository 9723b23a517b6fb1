//go:build e2e

package kafka

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// An ingester stands still while a topic keeps records for a short time, and then few bytes. The gateway
// refuses to create streams first, and then everything, before Kafka deletes what is not in the bucket. Once
// the ingester goes on, so do writes, and all lines that were acknowledged are there.
func testBrake(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "brake", 1)
	gateway, ingester := c.process(t, "gateway"), c.process(t, "ingest", "--kafka.partitions", "0", "--ship-every", "1s")
	query := c.process(t, "query", "--ingesters", ingester.addr)
	for _, p := range []*process{gateway, ingester, query} {
		p.start()
	}
	begin, stored, text := time.Now(), 0, "a line"
	push := func(stream string) error {
		err := gateway.post("/loki/api/v1/push", "application/json", "anonymous",
			fmt.Appendf(nil, `{"streams":[{"stream":{"app":"brake","name":%q},"values":[["%d",%q]]}]}`, stream, time.Now().UnixNano(), text))
		if err == nil {
			stored++
		} else if !strings.Contains(err.Error(), "status 503") {
			t.Fatal(err)
		}
		return err
	}
	set := func(name, value string) {
		t.Helper()
		cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if _, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, "brake"); err != nil {
			t.Fatal(err)
		}
	}
	pause := func(s syscall.Signal) {
		if err := ingester.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	// brakes pushes until nothing is taken. Known streams are taken longer than new ones.
	// Few streams pass, so each request has many.
	new := 0
	create := func() error {
		var streams []string
		for range 400 {
			new++
			streams = append(streams, fmt.Sprintf(`{"stream":{"app":"crowd","name":"%d"},"values":[["%d",%q]]}`, new, time.Now().UnixNano(), "a line"))
		}
		return gateway.post("/loki/api/v1/push", "application/json", "anonymous", []byte(`{"streams":[`+strings.Join(streams, ",")+`]}`))
	}
	brakes := func(what string, every time.Duration) {
		t.Helper()
		known := 0
		var creation, all error
		waitFor(t, what, func() bool {
			time.Sleep(every)
			created := create()
			all = push("known")
			if created != nil {
				creation = created
			}
			if all == nil && created != nil {
				known++
			}
			return all != nil && created != nil
		})
		t.Logf("%d lines of a known stream while new ones were refused:\n%v\n%v", known, creation, all)
		for _, err := range []error{creation, all} {
			if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "partition 0") {
				t.Errorf("the text of a refusal: %v", err)
			}
		}
		pause(syscall.SIGCONT)
		waitFor(t, "writes again", func() bool { return push("known") == nil && create() == nil })
	}
	if err := push("known"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the word of the ingester", func() bool {
		_, text := gateway.get("/metrics")
		return strings.Contains(text, "shale_gateway_unknown_partitions 0\n")
	})
	pause(syscall.SIGSTOP)
	if err := push("known"); err != nil { // what came before may be in the bucket
		t.Fatal(err)
	}
	set("retention.ms", "10000")
	waitFor(t, "a new retention", func() bool { return number(gateway, "shale_gateway_retention_used_ratio") > 0.3 })
	brakes("retention.ms, which is 10000 (10s)", 200*time.Millisecond)

	set("retention.ms", "100000")
	set("segment.bytes", "1048576")
	set("retention.bytes", "4194304")
	pause(syscall.SIGSTOP)
	text = string(randomText(64 << 10))
	brakes("retention.bytes, which is 4194304", 200*time.Millisecond)

	status, body := query.get(fmt.Sprintf("/loki/api/v1/query?query=sum(count_over_time({app=%%22brake%%22}[%ds]))", int(time.Since(begin).Seconds())+60), "X-Read-Consistency", "strong")
	if status != http.StatusOK || !strings.Contains(body, fmt.Sprintf("%q", fmt.Sprint(stored))) {
		t.Errorf("%d lines were acknowledged: status %d, %s", stored, status, body)
	}
}

// randomText returns letters that take as many bytes when they are compressed by so much as half.
func randomText(n int) []byte {
	text := randomBytes(n)
	for i := range text {
		text[i] = 'A' + text[i]%58
		if text[i] == '\\' || text[i] == '"' {
			text[i] = '_'
		}
	}
	return text
}
