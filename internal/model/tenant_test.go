package model

import (
	"errors"
	"strings"
	"testing"
)

// The error names the character that a reader sees, not one of its bytes.
func TestCheckTenantNamesTheCharacter(t *testing.T) {
	for name, want := range map[string]string{
		"a/b":     `the character '/'`,
		"a|b":     `the character '|'`,
		"grün":    `the character 'ü'`,
		"日本":      `the character '日'`,
		"a\ufffd": `the character '�'`,
		"a\xff":   `the byte 0xff, which is not UTF-8`,
		"gr\xfcn": `the byte 0xfc, which is not UTF-8`,
	} {
		err := CheckTenant(name)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "contains "+want+";") {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}
