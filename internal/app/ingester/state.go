package ingester

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/config"
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
