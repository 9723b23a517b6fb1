package load

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

// String returns the name by which a version is chosen.
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

// headers returns the lines of a request's head that say how its body is to be read.
func (p Protocol) headers(c Compression, e Emulation) string {
	h := "Content-Encoding: " + c.String() + "\r\n"
	if p == V2 {
		return h + "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\nX-Prometheus-Remote-Write-Version: 2.0.0\r\n"
	}
	h += "Content-Type: application/x-protobuf\r\n"
	if e == VMAgent && c == Zstd {
		return h + "X-VictoriaMetrics-Remote-Write-Version: 1\r\n"
	}
	return h + "X-Prometheus-Remote-Write-Version: 0.1.0\r\n"
}
