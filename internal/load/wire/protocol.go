package wire

import (
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Protocol is a version of remote write.
type Protocol uint8

// The versions.
const (
	V1 Protocol = iota // prometheus.WriteRequest
	V2                 // io.prometheus.write.v2.Request
)

var protocolNames = [...]string{"v1", "v2"}

// String returns the name of a version.
func (p Protocol) String() string { return protocolNames[p] }

// UnmarshalText reads the name of a version. Its error is of class [model.ErrInvalid].
func (p *Protocol) UnmarshalText(text []byte) error {
	i := slices.Index(protocolNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("%w: protocol %q: want v1 or v2", model.ErrInvalid, text)
	}
	*p = Protocol(i)
	return nil
}
