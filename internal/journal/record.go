package journal

import "github.com/shaledb/shale/internal/model"

// EncodeBatch appends the record of a batch to dst.
func EncodeBatch(dst []byte, b *model.Batch) []byte { return dst }

// DecodeBatch fills b from a record.
func DecodeBatch(src []byte, b *model.Batch) error { return nil }
