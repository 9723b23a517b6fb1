package prom_test

import (
	"net/http"
	"testing"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
)

func TestPipeline(t *testing.T) {
	p := apitest.Pipeline{
		New: func(t *testing.T, change func(*api.Options)) http.Handler {
			return newWorld(t, func(o *prom.Options) {
				if change != nil {
					change(&o.Options)
				}
			})
		},
		Path: "/api/v1/query?query=up", Full: http.StatusServiceUnavailable,
	}
	p.Run(t)
}
