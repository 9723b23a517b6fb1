package config

import (
	"crypto/tls"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values of the tag type, for fields whose Go type does not define how to parse them.
const (
	kindSize  = "size"
	kindTime  = "time"
	kindCount = "count"
)

// Kinds returns the values of the tag type.
func Kinds() []string { return []string{kindSize, kindTime, kindCount} }

// Parse parses a text of a kind into a field. Without a kind, the type of the field defines how.
func Parse(kind, text string, field reflect.Value) error {
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if kind == "" && field.Kind() == reflect.String {
		field.SetString(text)
		return nil
	}
	var n int64
	var err error
	switch kind {
	case kindSize:
		n, err = parseSize(text)
	case kindTime:
		var d time.Duration
		d, err = ParseDuration(text)
		n = int64(d)
	default:
		n, err = parseInt(text)
	}
	if err != nil {
		return err
	}
	field.SetInt(n)
	return nil
}

// Size is a number of bytes. Its text is a number with one of the units B, KiB, MiB, GiB, TiB (powers of
// 1024) or KB, MB, GB, TB (powers of 1000).
type Size int64

// Share is a number of bytes or a percentage of a whole. The zero value is invalid.
type Share struct {
	bytes   int64
	percent float64 // 0: bytes
}

// sizeUnits are in order of length, the longest suffix first, since "B" ends all of them.
func sizeUnits() []struct {
	suffix string
	bytes  float64
} {
	return []struct {
		suffix string
		bytes  float64
	}{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1}, {"", 1},
	}
}

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := parseSize(string(text))
	*s = Size(n)
	return err
}

func parseSize(s string) (int64, error) {
	bad := fmt.Errorf("%q is not a size; write a number of bytes or one such as 512MiB or 2GiB", s)
	for _, u := range sizeUnits() {
		num, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || f < 0 || math.IsNaN(f) || num == "" || strings.ContainsAny(num, "xXpP_eE") {
			return 0, bad
		}
		if f*u.bytes >= math.MaxInt64 {
			return 0, fmt.Errorf("%q is too large: must be less than 2^63 bytes", s)
		}
		return int64(f * u.bytes), nil
	}
	return 0, bad
}

// String returns the shortest text that parses as the same size.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		n := int64(u.bytes)
		if strings.HasSuffix(u.suffix, "iB") && int64(s) >= n && int64(s)%n == 0 {
			return strconv.FormatInt(int64(s)/n, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// UnmarshalText parses a size or a percentage above 0 and up to 100.
func (s *Share) UnmarshalText(text []byte) error {
	*s = Share{}
	num, isShare := strings.CutSuffix(string(text), "%")
	if !isShare {
		var err error
		if s.bytes, err = parseSize(string(text)); err != nil {
			return fmt.Errorf("%w, or a share such as 50%%", err)
		}
		return nil
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil || !(f > 0 && f <= 100) {
		return fmt.Errorf("%q is not a share; write a percentage above 0%% and up to 100%%", text)
	}
	s.percent = f
	return nil
}

// String returns a text that parses as the same share.
func (s Share) String() string {
	if s.percent != 0 {
		return strconv.FormatFloat(s.percent, 'f', -1, 64) + "%"
	}
	return Size(s.bytes).String()
}

// Of returns the share of a whole in bytes.
func (s Share) Of(whole int64) int64 {
	if s.percent != 0 {
		return int64(float64(whole) / 100 * s.percent)
	}
	return s.bytes
}

// IsPart reports whether the share is a percentage.
func (s Share) IsPart() bool { return s.percent != 0 }

// Level is the name of a log level, Format is "text" or "json", Switch is "on" or "off".
type (
	Level  string
	Format string
	Switch string
)

// TLSVersion is "1.2" or "1.3", ClientCerts is "request" or "require".
type (
	TLSVersion  string
	ClientCerts string
)

// UnmarshalText parses a version.
func (v *TLSVersion) UnmarshalText(text []byte) error {
	*v = TLSVersion(text)
	return oneOf(string(text), "1.2", "1.3")
}

// Number returns the version as the protocol has it.
func (v TLSVersion) Number() uint16 {
	if v == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

// UnmarshalText parses a demand.
func (c *ClientCerts) UnmarshalText(text []byte) error {
	*c = ClientCerts(text)
	return oneOf(string(text), "request", "require")
}

// Required reports whether a client must have a certificate.
func (c ClientCerts) Required() bool { return c == "require" }

// UnmarshalText parses a level.
func (l *Level) UnmarshalText(text []byte) error {
	*l = Level(text)
	return oneOf(string(text), "debug", "info", "warn", "error")
}

// UnmarshalText parses a format.
func (f *Format) UnmarshalText(text []byte) error {
	*f = Format(text)
	return oneOf(string(text), "text", "json")
}

// UnmarshalText parses a switch.
func (s *Switch) UnmarshalText(text []byte) error {
	*s = Switch(text)
	return oneOf(string(text), "on", "off")
}

// On reports whether the switch is on.
func (s Switch) On() bool { return s == "on" }

func oneOf(s string, allowed ...string) error {
	if slices.Contains(allowed, s) {
		return nil
	}
	return fmt.Errorf("%q is unknown: must be one of %s", s, strings.Join(allowed, ", "))
}

func parseInt(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}
