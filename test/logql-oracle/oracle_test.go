package oracle

import (
	"testing"

	loki "github.com/grafana/loki/v3/pkg/logql/syntax"
)

func TestLoki(t *testing.T) {
	e, err := loki.ParseExpr(`{a="b"}`)
	t.Log(e, err)
}
