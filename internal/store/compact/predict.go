package compact

import (
	"io"

	"github.com/shaledb/shale/internal/store/catalog"
)

// Prediction is a block that a merge would write, and what is uploaded in its place: see [Options.Predict].
type Prediction struct {
	// Block has what follows from the rows: their range, keys, tenants and numbers, and the size.
	Block catalog.Block
	Body  io.Reader
}

// predict uploads the predicted blocks of all cells.
func (m *merge) predict() error {
	for _, out := range m.all {
		blocks, err := m.c.o.Predict(m.ctx, m.job.inputs, out.TimeRange)
		if err != nil {
			return err
		}
		for _, p := range blocks {
			b := p.Block
			b.Signal, b.Level, b.Group = m.job.inputs[0].Signal, out.level, out.group
			if err := m.upload(m.ctx, b, [16]byte{}, func() io.Reader { return p.Body }); err != nil {
				return err
			}
		}
	}
	return nil
}
