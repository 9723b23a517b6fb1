package graphite

import (
	"slices"

	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/function/calculate"
	"github.com/shaledb/shale/internal/read/graphite/function/choose"
	"github.com/shaledb/shale/internal/read/graphite/function/combine"
	"github.com/shaledb/shale/internal/read/graphite/function/draw"
	"github.com/shaledb/shale/internal/read/graphite/function/rename"
	"github.com/shaledb/shale/internal/read/graphite/function/transform"
)

// Table returns the functions that targets may call.
func Table() []*function.Function {
	return slices.Concat(combine.Functions(), transform.Functions(), calculate.Functions(), choose.Functions(), rename.Functions(), draw.Functions())
}
