package push

import (
	_ "github.com/grafana/loki/v3/pkg/distributor"
	_ "github.com/grafana/loki/v3/pkg/loghttp/push"
	"testing"
)

func TestX(t *testing.T) {}
