package api

import (
	"net/http"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		needs  Needs
		header http.Header
		want   model.Class
	}{
		{Form, http.Header{}, model.Explore},
		{Form, http.Header{"X-Dashboard-Uid": {"abc"}}, model.Dashboard},
		{Form, http.Header{"X-Dashboard-Uid": {"abc"}, "Fromalert": {"true"}}, model.Rule},
		{Form, http.Header{"X-Rule-Uid": {"abc"}}, model.Rule},
		{Form, http.Header{"Fromalert": {"false"}}, model.Explore},
		{Content, http.Header{"X-Rule-Uid": {"abc"}}, model.Scan},
	} {
		if got := classOf(&Endpoint{Needs: c.needs}, c.header); got != c.want {
			t.Errorf("%v: %s, want %s", c.header, got, c.want)
		}
	}
}
