package compact

import (
	"slices"

	"github.com/shaledb/shale/internal/store/catalog"
)

// between returns a block of live that must not be left out of a merge of the inputs, or nil. Its order
// number is between an input and the last input, and it may hold rows of the same series and times as the
// former. See the package doc.
func between(inputs, live []catalog.Block) *catalog.Block {
	var last uint64
	for i := range inputs {
		last = max(last, inputs[i].OrderHi)
	}
	for i := range live {
		x := &live[i]
		if x.OrderLo > last || slices.ContainsFunc(inputs, func(s catalog.Block) bool { return s.ID == x.ID }) {
			continue
		}
		for k := range inputs {
			if s := &inputs[k]; s.OrderHi < last && s.OrderHi < x.OrderHi && s.MayMeet(x) {
				return x
			}
		}
	}
	return nil
}

// closure adds the blocks to the inputs that must not be left out. It returns nil if one of them may not be
// merged, or if they do not fit.
func closure(inputs, live []catalog.Block, may func(*catalog.Block) bool, fits func([]catalog.Block) bool) []catalog.Block {
	inputs = slices.Clone(inputs)
	for {
		if !fits(inputs) {
			return nil
		}
		x := between(inputs, live)
		if x == nil {
			sortByOrder(inputs)
			return inputs
		}
		if !may(x) {
			return nil
		}
		inputs = append(inputs, *x)
	}
}

// longest returns the longest prefix of the ordered inputs whose closure fits. A single block always fits:
// rewriting it changes no order.
func longest(inputs, live []catalog.Block, may func(*catalog.Block) bool, fits func([]catalog.Block) bool) []catalog.Block {
	for n := len(inputs); n > 1; n = n * 3 / 4 {
		if whole := closure(inputs[:n], live, may, fits); whole != nil {
			return whole
		}
	}
	if len(inputs) == 0 {
		return nil
	}
	return inputs[:1:1]
}
