package api

import (
	"net/http"
	"regexp"
)

// Origins are the origins of pages whose scripts may read answers. The zero value is all of them.
type Origins struct {
	only *regexp.Regexp // nil: any
}

// NewOrigins returns the origins that an expression matches as a whole; nil: any.
func NewOrigins(re *regexp.Regexp) Origins {
	if re == nil {
		return Origins{}
	}
	return Origins{regexp.MustCompile("^(?:" + re.String() + ")$")}
}

// Allow lets scripts of pages from elsewhere read the answer. Headers names those that they may send beside the usual
// ones, with ", " before each.
func (o Origins) Allow(header http.Header, r *http.Request, headers string) {
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

// Match reports whether pages of an origin may read answers.
func (o Origins) Match(origin string) bool { return o.only == nil || o.only.MatchString(origin) }
