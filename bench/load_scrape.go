package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/pace"
)

// selfScrape makes a Prometheus scrape itself once a second.
const selfScrape = `scrape_configs:
- job_name: prometheus
  scrape_interval: 1s
  static_configs: [{targets: [ADDRESS]}]
`

// diskScrape measures the size of a real program's metrics on the disk. A Prometheus scrapes itself and sends
// the samples to the system, or stores them if it is the system.
func diskScrape(ctx context.Context, t *trial) error {
	if t.Feeder == nil {
		return errors.New("a Prometheus must scrape; give --prometheus")
	}
	size := 0.0
	// The sender must have ended, so that nothing arrives between counting samples and measuring files.
	weigh := func(srv *system.Server) error {
		name, label := srv.Samples()
		samples, err := srv.Metric(ctx, name, label)
		if err != nil {
			return err
		}
		t.rec.Set("samples", samples)
		size, err = t.finalSize(ctx, srv)
		return err
	}
	if t.sys.Kind == system.Prometheus {
		srv, err := system.Start(ctx, t.sys, system.Options{Dir: filepath.Join(t.dir, "data"), Config: selfScrape})
		if err != nil {
			return err
		}
		if err = pace.Sleep(ctx, scrapeMinutes*t.Duration); err == nil {
			err = weigh(srv)
		}
		if err := errors.Join(err, srv.Stop()); err != nil {
			return err
		}
	} else if err := t.with(ctx, "", func(srv *system.Server) error {
		feeder, err := system.Start(ctx, *t.Feeder, system.Options{
			Dir: filepath.Join(t.dir, "feeder"), Config: selfScrape + fmt.Sprintf("remote_write:\n- url: %s\n", srv.WriteURL()),
		})
		if err != nil {
			return err
		}
		// It sends the rest when it stops.
		if err := errors.Join(pace.Sleep(ctx, scrapeMinutes*t.Duration), feeder.Stop()); err != nil {
			return err
		}
		return weigh(srv)
	}); err != nil {
		return err
	}
	if t.sys.Kind == system.Shale {
		var err error
		if size, err = t.shipAndCompact(ctx); err != nil {
			return err
		}
	}
	t.rec.Set("disk-B/sample", size/t.rec.Values["samples"])
	return nil
}

// scrapeMinutes is the time of scraping as a multiple of the duration of other loads: 480 scrapes are 2 hours
// at the usual 15 s.
const scrapeMinutes = 8
