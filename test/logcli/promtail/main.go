package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-kit/log"
	"github.com/grafana/dskit/backoff"
	"github.com/prometheus/client_golang/prometheus"
	prom "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"github.com/grafana/loki/v3/clients/pkg/promtail/api"
	"github.com/grafana/loki/v3/clients/pkg/promtail/client"
	"github.com/grafana/loki/v3/pkg/logproto"
)

func main() {
	to := flag.String("url", "", "where to push, with the path")
	tenant := flag.String("tenant", "", "the tenant")
	token := flag.String("token", "", "a bearer token")
	ca := flag.String("ca", "", "a file with the authorities")
	service := flag.String("service", "promtail", "the label service_name of the lines")
	lines := flag.Int("lines", 10, "lines to send")
	retries := flag.Int("retries", client.MaxRetries, "attempts with a batch")
	flag.Parse()
	if err := send(*to, *tenant, *token, *ca, *service, *lines, *retries); err != nil {
		fmt.Fprintln(os.Stderr, "promtail:", err)
		os.Exit(1)
	}
}

func send(to, tenant, token, ca, service string, lines, retries int) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	c := client.Config{
		BatchWait: 100 * time.Millisecond, BatchSize: client.BatchSize, Timeout: client.Timeout, TenantID: tenant,
		BackoffConfig: backoff.Config{MinBackoff: 100 * time.Millisecond, MaxBackoff: 500 * time.Millisecond, MaxRetries: retries},
	}
	c.URL.URL = u
	if token != "" {
		c.Client.Authorization = &prom.Authorization{Type: "Bearer", Credentials: prom.Secret(token)}
	}
	c.Client.TLSConfig.CAFile = ca
	registry := prometheus.NewRegistry()
	sender, err := client.New(client.NewMetrics(registry), c, 0, 0, false, log.NewLogfmtLogger(os.Stderr))
	if err != nil {
		return err
	}
	began := time.Now()
	for i := range lines {
		sender.Chan() <- api.Entry{
			Labels: model.LabelSet{"service_name": model.LabelValue(service)},
			Entry:  logproto.Entry{Timestamp: began.Add(time.Duration(i)), Line: fmt.Sprintf("level=info msg=\"line %d\"", i)},
		}
	}
	sender.Stop() // after the last batch has been sent, or given up
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	sent := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch {
			case f.GetName() == "promtail_sent_entries_total":
				sent += m.GetCounter().GetValue()
			case strings.HasPrefix(f.GetName(), "promtail_dropped_entries_total") && m.GetCounter().GetValue() > 0:
				return fmt.Errorf("dropped %v lines: %v", m.GetCounter().GetValue(), m.GetLabel())
			}
		}
	}
	if int(sent) != lines {
		return fmt.Errorf("sent %v of %d lines", sent, lines)
	}
	return nil
}
