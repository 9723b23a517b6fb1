package checksum

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Seal puts a line with the checksum before the JSON of an object. JSON alone does not detect a flipped bit
// in a number, which could hide or reveal rows.
func Seal(body []byte) []byte {
	return append(fmt.Appendf(nil, "%s\n", sumLine(body)), body...)
}

func sumLine(body []byte) string {
	return fmt.Sprintf("crc32c %08x", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// Unseal checks the checksum and returns what follows it. An error has no class.
func Unseal(data []byte) ([]byte, error) {
	line, body, ok := bytes.Cut(data, []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte("crc32c ")) {
		return nil, errors.New("the checksum line is missing")
	}
	if want := sumLine(body); string(line) != want {
		return nil, fmt.Errorf("checksum mismatch: stored %q, computed %q", line, want)
	}
	return body, nil
}

// Parse reads an object: a checksum, and JSON with a version. An unknown version is an error of class
// invalid, all other damage is of class corrupt.
func Parse(name string, data []byte, version int, into any, also ...int) error {
	data, err := Unseal(data)
	if err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	if v.Version != version && !slices.Contains(also, v.Version) {
		return fmt.Errorf("%s: %w: unknown version %d, this program reads version %d", name, model.ErrInvalid, v.Version, version)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w: %v", name, model.ErrCorrupt, err)
	}
	return nil
}
