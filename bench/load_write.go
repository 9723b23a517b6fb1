package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shaledb/shale/bench/system"
)

// Stamps. A load that is sent as fast as possible runs through time faster than the clock. The stamps of
// Graphite are whole seconds; they begin now and run into the future, so that none is older than the window
// that servers hold open. Those of remote write are 2 s apart and begin 10 minutes ago: Prometheus refuses
// samples that are 10 minutes ahead.
const (
	remoteWriteStep = "2s"
	remoteWriteBack = 10 * time.Minute
)

// graphiteKnown measures lines of names that the server knows.
func graphiteKnown(ctx context.Context, t *trial) error {
	return t.with(ctx, "", func(srv *system.Server) error {
		agents := t.scaled(100)
		if _, err := t.load(ctx, 0, t.graphite(srv, agents, 1000, "--rate", "0", "--rounds", "2", "--start", at(time.Now().Add(-10*time.Second)))...); err != nil {
			return err
		}
		if err := t.warm(ctx, srv); err != nil {
			return err
		}
		_, err := t.measure(ctx, srv, t.Duration, t.graphite(srv, agents, 1000,
			"--rate", "0", "--duration", t.Duration.String(), "--start", at(time.Now().Add(2*time.Second)))...)
		return err
	})
}

// graphiteNew measures lines of names that the server has never seen.
func graphiteNew(ctx context.Context, t *trial) error {
	return t.with(ctx, "", func(srv *system.Server) error {
		_, err := t.measure(ctx, srv, 0, t.graphite(srv, t.scaled(1000), 1000, "--rate", "0", "--rounds", "1")...)
		return err
	})
}

// graphiteSteady measures a pace far below the limit of the server.
func graphiteSteady(ctx context.Context, t *trial) error {
	return t.with(ctx, "", func(srv *system.Server) error {
		agents := t.scaled(100)
		rate := fmt.Sprint(agents * 1000)
		if _, err := t.load(ctx, 0, t.graphite(srv, agents, 1000, "--rate", "0", "--rounds", "1", "--start", at(time.Now().Add(-10*time.Second)))...); err != nil {
			return err
		}
		if err := t.warm(ctx, srv); err != nil {
			return err
		}
		_, err := t.measure(ctx, srv, t.Duration, t.graphite(srv, agents, 1000, "--rate", rate, "--duration", t.Duration.String())...)
		return err
	})
}

// warm waits until the server has finished the work of the preparation.
func (t *trial) warm(ctx context.Context, srv *system.Server) error {
	_, _, err := t.quiet(ctx, srv)
	return err
}

// remoteWriteNew measures the first sample of each series.
func remoteWriteNew(version string) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		return t.with(ctx, "", func(srv *system.Server) error {
			_, err := t.measure(ctx, srv, 0, t.remoteWrite(srv, t.scaled(200), "--protocol", version, "--rate", "0", "--rounds", "1")...)
			return err
		})
	}
}

// remoteWriteKnown measures further samples of series that the server knows.
func remoteWriteKnown(version string, more ...string) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		return t.with(ctx, "", func(srv *system.Server) error { return t.remoteWriteOfKnown(ctx, srv, version, more...) })
	}
}

func (t *trial) remoteWriteOfKnown(ctx context.Context, srv *system.Server, version string, more ...string) error {
	targets := t.scaled(200)
	if err := t.makeKnown(ctx, srv, targets, version); err != nil {
		return err
	}
	args := t.remoteWrite(srv, targets, "--protocol", version, "--rate", "0",
		"--duration", t.Duration.String(), "--step", remoteWriteStep, "--start", at(time.Now().Add(-remoteWriteBack)))
	_, err := t.measure(ctx, srv, t.Duration, append(args, more...)...)
	return err
}

// makeKnown sends one sample of each series.
func (t *trial) makeKnown(ctx context.Context, srv *system.Server, targets int, version string) error {
	if _, err := t.load(ctx, 0, t.remoteWrite(srv, targets, "--protocol", version, "--rate", "0",
		"--rounds", "1", "--start", at(time.Now().Add(-remoteWriteBack-time.Minute)))...); err != nil {
		return err
	}
	return t.warm(ctx, srv)
}

// slowSync measures a load over a disk with slow syncs. A request waits for two syncs at most, so 4 senders
// of known series would measure their own waiting. New series take more CPU time than the syncs take.
func slowSync(run func(context.Context, *trial) error) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		if err := t.slowDown("--sync-delay", "5ms"); err != nil {
			return err
		}
		return run(ctx, t)
	}
}

// slowDown makes the trial use the slow server.
func (t *trial) slowDown(delay ...string) error {
	if t.Slow == "" {
		return errors.New("the slow server is not built: omit --shale, so that this tree is measured")
	}
	t.sys.Binary, t.sys.Flags = t.Slow, slices.Concat(t.sys.Flags, delay)
	return nil
}
