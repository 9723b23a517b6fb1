package loki

import (
	"net/http"
	"testing"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
)

func TestPipeline(t *testing.T) {
	p := apitest.Pipeline{
		New: func(t *testing.T, change func(*api.Options)) http.Handler {
			return newWorld(t, func(o *Options) {
				if change != nil {
					change(&o.Options)
				}
			})
		},
		Path: current + "query_range?query=%7Bapp%3D%22a%22%7D", Full: http.StatusTooManyRequests,
	}
	p.Run(t)
}
