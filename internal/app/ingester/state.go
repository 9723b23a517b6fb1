package ingester

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/store/topics"
)

// OpenState opens the state topic, which the process only writes to.
func OpenState(c *config.Config, epoch *topics.Epoch, registry prometheus.Registerer, log *slog.Logger) (*kafka.State, error) {
	connection := c.Kafka.Connection()
	connection.Log = log
	return kafka.OpenState(kafka.StateOptions{Connection: connection, Topic: epoch.Topic, Registerer: registry, Logger: log})
}

// Forget returns what tells gateways that a partition lacks labels, so that they send all of them again.
func Forget(to *kafka.State, epoch *topics.Epoch) func(partition int32, offset int64) {
	return func(partition int32, offset int64) {
		f := state.Forget{Partition: state.Partition{Epoch: epoch.Number, Number: partition}, Since: offset}
		to.Put(f.Encode())
	}
}

const (
	// coverEvery is how often gateways are told how far the bucket has come.
	coverEvery = 2 * time.Second
	// coverAgain is after how many times it is said again: Kafka may not have taken it.
	coverAgain = 30
)

// Cover tells gateways how far the bucket has the partitions of this process, until ctx ends. They refuse
// writes while what it has not is about to be deleted.
func Cover(ctx context.Context, owner *ingest.Owner, to *kafka.State, epoch *topics.Epoch) {
	tick := time.NewTicker(coverEvery)
	defer tick.Stop()
	said, topic := map[int32]int64{}, int64(0)
	for n := 0; ; n++ {
		if now := to.Topics(); n%coverAgain == 0 || now != topic {
			clear(said)
			topic = now
		}
		owner.Each(func(number int32, p *ingest.Partition, _ ingest.State, _ error) {
			if p == nil {
				return
			}
			if before, ok := said[number]; ok && p.Shipped() <= before {
				return
			}
			said[number] = p.Shipped()
			c := state.Covered{Partition: state.Partition{Epoch: epoch.Number, Number: number}, Next: said[number]}
			to.Put(c.Encode())
		})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
