package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/shaledb/shale/internal/model"
)

// GapError says that acknowledged records of a partition are gone before they were read. It is of class
// corrupt: waiting does not help.
type GapError struct {
	Topic     string
	Partition int32
	// From and To are the first and the last offset that are missing.
	From, To int64
	// Why says what took them, as far as that is known.
	Why string
}

// Error names the partition and the offsets.
func (e *GapError) Error() string {
	return fmt.Sprintf("kafka: topic %s, partition %d: the records with offsets %d to %d are gone: %s",
		e.Topic, e.Partition, e.From, e.To, e.Why)
}

// Unwrap returns the class.
func (e *GapError) Unwrap() error { return model.ErrCorrupt }

// PoisonError says that a record cannot be read. No later record of its partition is read. It is of class
// corrupt.
type PoisonError struct {
	Topic     string
	Partition int32
	Offset    int64
	Err       error
}

// Error names the partition and the offset.
func (e *PoisonError) Error() string {
	return fmt.Sprintf("kafka: topic %s, partition %d: the record with offset %d cannot be read: %v", e.Topic, e.Partition, e.Offset, e.Err)
}

// Unwrap returns the class and the cause.
func (e *PoisonError) Unwrap() []error { return []error{model.ErrCorrupt, e.Err} }

// TopicError says that a topic is not the one that this installation has recorded. It is of class invalid.
type TopicError struct {
	Topic, Text string
}

// Error returns the text.
func (e *TopicError) Error() string { return fmt.Sprintf("kafka: topic %s: %s", e.Topic, e.Text) }

// Unwrap returns the class.
func (e *TopicError) Unwrap() error { return model.ErrInvalid }

// classified gives an error of the client its class.
func classified(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, model.ErrInvalid), errors.Is(err, model.ErrTransient), errors.Is(err, model.ErrCorrupt), errors.Is(err, model.ErrClosed):
		return err
	case errors.Is(err, kgo.ErrClientClosed), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", model.ErrClosed, err)
	}
	return fmt.Errorf("%w: %w", model.ErrTransient, err)
}
