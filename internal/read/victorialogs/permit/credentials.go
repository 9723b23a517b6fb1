package permit

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/shaledb/shale/internal/model"
)

// maxCredentialBytes bounds the file of credentials.
const maxCredentialBytes = 16 << 10

// Credentials reads the file with the value of the header Authorization. It is read for each request, which
// costs little next to the request, so that a new file counts at once.
func Credentials(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	unusable := func(why any) error {
		return fmt.Errorf("%w: the file of victorialogs.authorization-file, %s, cannot be used, so VictoriaLogs is not asked: %v", model.ErrTransient, path, why)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", unusable(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCredentialBytes+1))
	switch text = bytes.TrimSpace(text); {
	case err != nil:
		return "", unusable(err)
	case len(text) == 0:
		return "", unusable("it is empty")
	case len(text) > maxCredentialBytes:
		return "", unusable(fmt.Sprintf("it has more than %d bytes", maxCredentialBytes))
	case bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", unusable("it must be one line of printable ASCII, such as Bearer TOKEN")
	}
	return string(text), nil
}
