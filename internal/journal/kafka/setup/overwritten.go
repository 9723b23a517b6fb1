package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// overwritten reports whether brokers have lost records that are in the bucket, and others have their
// offsets, which no one reads. Then these are what is given up, and an error says so if they were not named.
func (l *loss) overwritten(ctx context.Context, p *place, e *topics.Epoch, at *catalog.Progress, has kafka.Extent) (bool, error) {
	if at.Leaders == 0 {
		return false, nil
	}
	shipped := topics.Offset(at.To)
	end, err := kafka.LeaderEnd(ctx, p.connection, e.Topic, l.Partition, int32(at.Leaders-1))
	if err != nil || end >= shipped {
		return false, err
	}
	if end < 0 {
		end = shipped - 1 // it is not known how many there are
	}
	switch {
	case has.End < shipped:
		return false, fmt.Errorf("partition %d ends at offset %d, and the bucket has records up to %d: brokers have lost records, and what is written now takes their offsets and is not read. "+
			"Delete the topic, and begin with another one: shale kafka adopt --give-up-unshipped", l.Partition, has.End, shipped)
	case l.From != end || l.To != shipped-1:
		return false, fmt.Errorf("partition %d: brokers have lost records that are in the bucket, and other records have the offsets %d to %d; to give these up, use %d:%d-%d",
			l.Partition, end, shipped-1, l.Partition, end, shipped-1)
	}
	return true, nil
}

// overwrite records a ship without rows, which names the leader that has taken the last record that is not
// read.
func (l *loss) overwrite(ctx context.Context, p *place, cat *catalog.Catalog, e *topics.Epoch, at catalog.Progress) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := kafka.OpenReader(ctx, kafka.ReaderOptions{Connection: p.connection, Topic: e.Topic, TopicID: e.ID, Partition: l.Partition, From: l.To})
	if err != nil {
		return err
	}
	defer r.Close()
	leader := int32(-1)
	for err = nil; !errors.Is(err, errReadable); {
		err = r.Read(ctx, func(rec *kafka.Record) error {
			leader = rec.LeaderEpoch
			return errReadable
		})
		if err != nil && !errors.Is(err, errReadable) && !errors.Is(err, model.ErrTransient) {
			return err
		}
	}
	_, err = cat.Ship(ctx, catalog.Ship{
		Covered: []catalog.Coverage{{Node: at.Node, Epoch: at.Epoch, From: at.To + 1, To: at.To, Leaders: uint64(int64(leader) + 1)}},
		Skipped: []catalog.Skip{{Node: at.Node, Epoch: at.Epoch, From: topics.Sequence(l.From), To: topics.Sequence(l.To),
			Why: "brokers had lost the records that are in the bucket, and others have their offsets"}},
	}, nil)
	if errors.Is(err, catalog.ErrStale) {
		return fmt.Errorf("an ingester has shipped the partition just now; look at it again: %w", err)
	}
	l.Recorded = err == nil
	return err
}
