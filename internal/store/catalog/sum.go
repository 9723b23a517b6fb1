package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// sealed puts a line with the checksum before the JSON of an object. JSON alone does not detect a flipped bit
// in a number, which could hide or reveal rows.
func sealed(body []byte) []byte {
	return append(fmt.Appendf(nil, "%s\n", sumLine(body)), body...)
}

// Seal returns the content of an object of JSON outside of the catalogue, and Unseal its JSON. An error of
// Unseal has no class.
func Seal(body []byte) []byte { return sealed(body) }

// Unseal checks what Seal has added, and returns the rest.
func Unseal(data []byte) ([]byte, error) { return unsealed(data) }

func sumLine(body []byte) string {
	return fmt.Sprintf("crc32c %08x", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// unsealed checks the checksum and returns what follows it.
func unsealed(data []byte) ([]byte, error) {
	line, body, ok := bytes.Cut(data, []byte("\n"))
	if !ok || !bytes.HasPrefix(line, []byte("crc32c ")) {
		return nil, errors.New("the checksum line is missing")
	}
	if want := sumLine(body); string(line) != want {
		return nil, fmt.Errorf("checksum mismatch: stored %q, computed %q", line, want)
	}
	return body, nil
}
