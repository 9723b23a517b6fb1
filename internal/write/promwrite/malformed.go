package promwrite

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/wire"
)

// malformed is [wire.Malformed] with a text that names the protocol.
type malformed wire.Malformed

// Error names the defect and the byte offset.
func (m *malformed) Error() string {
	return fmt.Sprintf("%v: remote write body: %s at byte %d of the decoded body", model.ErrInvalid, m.What, m.At)
}

// Unwrap gives the class of the error.
func (m *malformed) Unwrap() error { return model.ErrInvalid }
