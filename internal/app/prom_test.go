package app

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/config"
)

func TestBuildInfoIsTheProgram(t *testing.T) {
	c := config.Config{Version: "1.2.3", Commit: "c0ffee"}
	v := promOptions(c, nil, nil, apiOptions(c, prometheus.NewRegistry(), nil)).Version
	if v.Version != "1.2.3" || v.Revision != "c0ffee" || v.GoVersion != runtime.Version() {
		t.Errorf("got %+v", v)
	}
}
