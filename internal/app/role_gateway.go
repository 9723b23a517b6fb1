package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/app/gateway"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/graphite"
	"github.com/shaledb/shale/internal/write/promwrite"
)

// gatewayRole receives writes and takes them to Kafka.
type gatewayRole struct {
	n *node
	*gateway.Gateway
}

func openGateway(ctx context.Context, n *node) (role, error) {
	c := n.config
	if err := refuseForGateway(c); err != nil {
		return nil, err
	}
	epoch, err := n.topic()
	if err != nil {
		return nil, err
	}
	split, limits := memoryOf(c), c.Write
	limits.MaxAge, limits.AgeSetting = c.OldestAge()
	o := gateway.Options{
		Connection: c.Kafka.Connection(), Epoch: *epoch, Earlier: n.epochs[:len(n.epochs)-1], Bucket: n.bucket, Seed: n.seed,
		KnownBytes: split.known, QueueBytes: split.journal, LabelRefresh: c.Roles.LabelRefresh, Gateways: c.Roles.Gateways,
		Limits: limits, LimitsOf: n.tenants.write, SeriesOf: func(tenant string) int64 { return n.tenants.head(tenant).Series },
		GroupsOf: n.tenants.groups,
		Rates:    gateway.Rates{All: c.Head.NewSeries, Of: func(tenant string) int64 { return n.tenants.head(tenant).NewSeries }}, Meter: newTenantMeter(n.registry), Families: c.Head.Metadata, Registerer: n.registry, Logger: n.log,
	}
	if c.HA.On() {
		o.Pairs, o.SpareBytes = &c.Replicas, splitMemory(c.MemoryBytes).forReplicas().replicas
	}
	g, err := gateway.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &gatewayRole{n, g}, nil
}

// refuseForGateway refuses settings that a gateway would not carry out.
func refuseForGateway(c *config.Config) error {
	refuse := func(setting, why string) error {
		return fmt.Errorf("%w: %s: a gateway does not carry it out, because %s", model.ErrInvalid, setting, why)
	}
	const files = "it keeps no files"
	switch {
	case c.Carbon.Relay != "":
		return refuse("graphite.relay", files)
	case c.Carbon.Aggregations != "":
		return refuse("graphite.aggregation-rules", files)
	}
	return nil
}

// ready is [role.ready].
func (g *gatewayRole) ready() error { return g.Ready() }

// mount is [role.mount].
func (g *gatewayRole) mount(mux api.Mux) (err error) {
	n, path := g.n, g.Path()
	if n.servers.carbon, err = openCarbon(n.config, carbonPlace{path: path}, n.registry, n.log); err != nil {
		return err
	}
	mux.Handle(graphite.HTTPPath, graphite.NewHTTP(path, n.servers.carbon.rules(), n.registry))
	if pairs := g.Pairs(); pairs == nil {
		mux.Handle(promwrite.Path, promwrite.New(path, n.registry))
	} else {
		h := promwrite.NewElecting(path, pairs, n.registry)
		mux.Handle(promwrite.Path, h)
		g.RunPairs(h.TakeOver)
	}
	receive(*n.config, path, n.tenants, mux, n.registry)
	return n.servers.listenGraphite(n.config, path, n.registry, n.log)
}

// quiesce is [role.quiesce]. The listeners of Graphite are closed with HTTP.
func (g *gatewayRole) quiesce() error { return nil }

// close is [role.close].
func (g *gatewayRole) close() error {
	if err := g.Close(); err != nil {
		// Their senders have seen no success.
		g.n.log.Warn("stopping: Kafka did not acknowledge all batches", "err", err)
		if !errors.Is(err, model.ErrTransient) {
			return err
		}
	}
	return nil
}
