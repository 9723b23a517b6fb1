package promwrite

import (
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/wire"
)

// malformed says what is wrong with a body and at which of its bytes, as package wire does, in a text that names the protocol.
type malformed wire.Malformed

// Error names the defect and the byte offset.
func (m *malformed) Error() string {
	return fmt.Sprintf("%v: remote write body: %s at byte %d of the decoded body", model.ErrInvalid, m.What, m.At)
}

// Unwrap gives the class of the error.
func (m *malformed) Unwrap() error { return model.ErrInvalid }
