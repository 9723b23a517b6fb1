package api

import (
	"net/http/httptest"
	"testing"
)

func TestWantsFresh(t *testing.T) {
	for _, x := range []struct {
		query, header string
		want          bool
	}{
		{"", "", false}, {"cache=true", "max-age=60", false}, {"cache=false", "", true}, {"", "No-Cache", true}, {"", "max-age=0, no-store", true},
	} {
		r := httptest.NewRequest("GET", "/?"+x.query, nil)
		if x.header != "" {
			r.Header.Set("Cache-Control", x.header)
		}
		if err := r.ParseForm(); err != nil {
			t.Fatal(err)
		}
		if got := (&Request{Request: r}).wantsFresh(); got != x.want {
			t.Errorf("%q, %q: %v, should be %v", x.query, x.header, got, x.want)
		}
	}
}
