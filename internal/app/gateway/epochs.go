package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/known"
	"github.com/shaledb/shale/internal/store/topics"
)

// lane takes batches to the topic of an epoch.
type lane struct {
	epoch    topics.Epoch
	producer *kafka.Producer
	state    *kafka.State
}

// open connects to the topic of an epoch.
func (g *Gateway) open(ctx context.Context, e topics.Epoch) (*lane, error) {
	l := &lane{epoch: e}
	var err error
	l.producer, err = kafka.OpenProducer(ctx, kafka.ProducerOptions{
		Connection: g.o.Connection, Topic: e.Topic, TopicID: e.ID, Partitions: e.Partitions,
		PartitionOf: func(k model.Key) int32 { return topics.PartitionOf(k, e.Partitions) },
		MaxBytes:    g.o.QueueBytes, Metrics: g.metrics, Logger: g.o.Logger,
	})
	if err != nil {
		return nil, err
	}
	g.pairs.follow(e.Number)
	told := func(key string, value []byte, offset int64) { g.told(e.Number, key, value, offset) }
	again := func() { g.pairs.again(e.Number) }
	l.state, err = kafka.OpenState(kafka.StateOptions{Connection: g.o.Connection, Topic: e.Topic, Take: told, Again: again, Registerer: g.o.Registerer, Logger: g.o.Logger})
	if err != nil {
		return nil, errors.Join(err, l.producer.Close(ctx))
	}
	return l, nil
}

func (l *lane) close(ctx context.Context) error {
	l.state.Close()
	return l.producer.Close(ctx)
}

// epochLog appends batches to the topic that takes writes, and notes which labels it has taken.
type epochLog struct{ g *Gateway }

// Append is [write.Journal.Append].
//
// A topic that another one follows takes no more records: brokers refuse them. So a batch that it has
// refused goes to the next one, as a sender's repetition would. What was acknowledged before is before that.
func (a *epochLog) Append(ctx context.Context, b *model.Batch) error {
	g := a.g
	for {
		// If the topic changes after this moment, its announcements do not count.
		sent := g.announcer.Moment()
		l := g.now.Load()
		err := l.producer.Append(ctx, b)
		switch {
		case err == nil:
			if n := b.Labels.Len(); n > 0 {
				keys := make([]model.Key, n)
				for i, series := range b.Labels.Series {
					keys[i] = b.Keys[series]
				}
				g.announcer.Announced(sent, b.Tenant, b.Signal, keys)
			}
			return nil
		case g.now.Load() != l: // another batch has gone ahead
		case errors.Is(err, kafka.ErrSealed):
			if waited := g.await(ctx, l); waited != nil {
				return fmt.Errorf("%w; %w", err, waited)
			}
		default:
			return err
		}
	}
}

const (
	// awaitTime is how long a batch waits for the topic after a sealed one. The command that seals it records
	// the next one a moment later.
	awaitTime  = 10 * time.Second
	awaitEvery = 200 * time.Millisecond
)

// await waits until another lane than this one takes batches.
func (g *Gateway) await(ctx context.Context, than *lane) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	for {
		changed, err := g.next(ctx, than)
		if changed {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, errors.New("the bucket records no later topic yet; if a shale kafka double or adopt has failed, run it again"))
		case <-time.After(awaitEvery):
		}
	}
}

// next goes on with the next epoch if there is one, and reports whether another lane than this one takes
// batches now.
func (g *Gateway) next(ctx context.Context, than *lane) (changed bool, err error) {
	if err := g.follow.Take(ctx); err != nil {
		return g.now.Load() != than, err
	}
	defer g.follow.Give()
	if g.now.Load() != than {
		return true, nil
	}
	if time.Since(g.asked) < awaitEvery { // by another batch
		return false, nil
	}
	all, err := later(ctx, g.o.Bucket, than.epoch.Number)
	g.asked = time.Now()
	if err != nil || len(all) == 0 {
		return false, err
	}
	g.brake.follow(all...)
	e := topics.Latest(all)
	l, err := g.open(ctx, *e)
	if err != nil {
		return false, err
	}
	// Batches that take the new lane before their labels count as unannounced lack them. The owners of its
	// partitions read them from the blocks of the epoch before.
	g.now.Store(l)
	if err := g.announcer.SetTopic(known.Topic{Epoch: e.Number, Partitions: uint32(e.Partitions)}); err != nil {
		return true, err
	}
	g.series.follow(e)
	g.o.Logger.Info("another topic takes writes", "topic", e.Topic, "epoch", e.Number, "partitions", e.Partitions)
	g.done.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		_ = than.close(ctx) // whoever waits for an answer has an error of its own
	})
	return true, nil
}

// later returns the epochs after a number. While this process slept, topics may have followed that are gone
// again.
func later(ctx context.Context, b catalog.Reader, after uint64) (all []topics.Epoch, err error) {
	for {
		e, err := topics.Next(ctx, b, after)
		if err != nil || e == nil {
			return all, err
		}
		all, after = append(all, *e), e.Number
	}
}
