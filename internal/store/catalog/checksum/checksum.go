package checksum

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
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
