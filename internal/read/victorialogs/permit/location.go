package permit

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Location is where a server is; the zero value is nowhere.
type Location struct{ url string }

const sourcePrefix = "victorialogs="

// UnmarshalText reads the form victorialogs=URL.
func (l *Location) UnmarshalText(text []byte) error {
	if l.url = ""; len(text) == 0 {
		return nil
	}
	at, ok := strings.CutPrefix(string(text), sourcePrefix)
	if !ok {
		return fmt.Errorf("%w: %q is not of the form victorialogs=URL", model.ErrInvalid, text)
	}
	u, err := url.Parse(at)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the URL of VictoriaLogs: %v", model.ErrInvalid, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%w: the URL of VictoriaLogs must begin with http:// or https:// and name a host: %q", model.ErrInvalid, u.Redacted())
	case u.User != nil:
		return fmt.Errorf("%w: the URL of VictoriaLogs must not hold credentials", model.ErrInvalid)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%w: the URL of VictoriaLogs must not have parameters: %q", model.ErrInvalid, at)
	}
	l.url = strings.TrimSuffix(u.String(), "/")
	return nil
}

// MarshalText returns the form that UnmarshalText reads.
func (l Location) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// String returns the form that UnmarshalText reads.
func (l Location) String() string {
	if l.url == "" {
		return ""
	}
	return sourcePrefix + l.url
}

// Set reports whether there is a server.
func (l Location) Set() bool { return l.url != "" }

// URL returns the URL of the server, or "".
func (l Location) URL() string { return l.url }

// Equal reports whether two locations are the same.
func (l Location) Equal(o Location) bool { return l == o }

// At returns the location of a server.
func At(url string) Location { return Location{url} }
