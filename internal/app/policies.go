package app

import (
	"context"
	"log/slog"
	"sync"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// policies are the policies of Graphite names, read again when their files change.
type policies struct {
	*policy.Files
	stop context.CancelFunc
	done sync.WaitGroup
}

func openPolicies(c config.Config, log *slog.Logger) (*policies, error) {
	files, err := policy.Open(c.Policies)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &policies{Files: files, stop: cancel}
	p.done.Go(func() { files.Watch(ctx, log) })
	return p, nil
}

func (p *policies) close() {
	p.stop()
	p.done.Wait()
}
