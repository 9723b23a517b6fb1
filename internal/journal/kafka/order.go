package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
)

// Order appends a batch with a control record to every partition of a topic, and returns the offset in each,
// once all in-sync replicas have it. After an error any partition may have it.
func Order(ctx context.Context, c Connection, topic, id string, partitions int32, b *model.Batch) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t, err := Describe(ctx, c, topic)
	if err == nil {
		err = t.is(id, partitions)
	}
	if err != nil {
		return nil, err
	}
	cl, err := c.client(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(askTimeout))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	record := journal.EncodeBatch(nil, b)
	records, offsets := make([]*kgo.Record, partitions), make([]int64, partitions)
	for p := range records {
		records[p] = &kgo.Record{Topic: topic, Partition: int32(p), Value: record}
	}
	for _, r := range cl.ProduceSync(ctx, records...) {
		if r.Err != nil {
			return nil, fmt.Errorf("kafka: topic %s, partition %d: %w: an order is not acknowledged: %w", topic, r.Record.Partition, model.ErrTransient, r.Err)
		}
		offsets[r.Record.Partition] = r.Record.Offset
	}
	return offsets, nil
}
