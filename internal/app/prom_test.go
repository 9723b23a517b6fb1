package app

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/config"
)

func TestBuildInfoIsTheProgram(t *testing.T) {
	v := promOptions(config.Config{Version: "1.2.3", Commit: "c0ffee"}, nil, nil, turns{}, prometheus.NewRegistry(), nil).Version
	if v.Version != "1.2.3" || v.Revision != "c0ffee" || v.GoVersion != runtime.Version() {
		t.Errorf("got %+v", v)
	}
}
