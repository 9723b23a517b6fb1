package line

import (
	"bytes"
	"regexp"

	"github.com/shaledb/shale/internal/read/logql/counts"
)

// escapes matches what terminals take for colours and the like: an introducer, and then either words up to a
// bell, or numbers up to a final character. It is the expression of github.com/acarl005/stripansi (MIT
// licence), as in Loki.
const escapes = `[\x{1b}\x{9b}][[\]()#;?]*` +
	`(?:(?:(?:[a-zA-Z\d]*(?:;[a-zA-Z\d]*)*)?\x07)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PRZcf-ntqry=><~]))`

// decolorizer is | decolorize.
type decolorizer struct {
	re  *regexp.Regexp
	out []byte
}

func newDecolorizer() newStage {
	counts.Regexp()
	re := regexp.MustCompile(escapes)
	return func(*Runner) stage { return &decolorizer{re: re} }
}

func (d *decolorizer) run(_ *Runner, line []byte) ([]byte, bool) {
	if bytes.IndexByte(line, 0x1b) < 0 && !bytes.Contains(line, []byte("\u009b")) {
		return line, true
	}
	d.out = d.out[:0]
	for {
		at := d.re.FindIndex(line)
		if at == nil {
			d.out = append(d.out, line...)
			return d.out, true
		}
		d.out = append(d.out, line[:at[0]]...)
		line = line[at[1]:]
	}
}
