package promql

import (
	"fmt"
	"unsafe"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
)

// labelsOf builds the engine's labels. Apart from the builder, which is reused, that takes one allocation.
func labelsOf(b *labels.ScratchBuilder, l model.Labels) (labels.Labels, error) {
	b.Reset()
	rest := l
	for {
		name, value, next, ok := rest.Next()
		if !ok {
			break
		}
		// The builder copies the strings when it makes the labels, and drops them at the next Reset.
		b.Add(view(name), view(value))
		rest = next
	}
	if len(rest) != 0 {
		return malformed(l)
	}
	return b.Labels(), nil
}

func malformed(l model.Labels) (labels.Labels, error) {
	return labels.EmptyLabels(), fmt.Errorf("series: %w", l.Check())
}

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
