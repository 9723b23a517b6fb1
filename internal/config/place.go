package config

import (
	"fmt"
	"strings"
)

// Place is a folder and its size: DIR:SIZE. In the zero value, the folder is missing.
type Place struct {
	Dir   string
	Bytes int64
}

// UnmarshalText parses a place. The folder may have colons.
func (p *Place) UnmarshalText(text []byte) error {
	*p = Place{}
	if len(text) == 0 {
		return nil
	}
	s := string(text)
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return fmt.Errorf("%q is not a folder and a size; write DIR:SIZE, such as /var/cache/shale:200GiB", s)
	}
	bytes, err := parseSize(s[i+1:])
	if err != nil {
		return fmt.Errorf("%q is not a folder and a size, such as /var/cache/shale:200GiB: %w", s, err)
	}
	p.Dir, p.Bytes = s[:i], bytes
	return nil
}

// String returns a text that parses as the same place.
func (p Place) String() string {
	if p.Dir == "" {
		return ""
	}
	return p.Dir + ":" + Size(p.Bytes).String()
}
