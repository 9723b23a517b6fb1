package api

import (
	"net/http"
	"regexp"
)

// Origins are the origins of the pages whose scripts may read responses. The zero value is all of them.
type Origins struct {
	only *regexp.Regexp // nil: any
}

// NewOrigins returns the origins that the whole expression matches; nil: any.
func NewOrigins(re *regexp.Regexp) Origins {
	if re == nil {
		return Origins{}
	}
	return Origins{regexp.MustCompile("^(?:" + re.String() + ")$")}
}

// allow lets scripts of pages from other origins read the response. headers are the request headers that they
// may send besides the usual ones, each after ", ".
func (o Origins) allow(header http.Header, r *http.Request, headers string) {
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return
	}
	header.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Origin"+headers)
	header.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	header.Set("Access-Control-Expose-Headers", "Date")
	if o.Match(origin) {
		if o.only == nil {
			origin = "*"
		}
		header.Set("Access-Control-Allow-Origin", origin)
	}
}

// Match reports whether pages of an origin may read responses.
func (o Origins) Match(origin string) bool { return o.only == nil || o.only.MatchString(origin) }
