package victorialogs

import (
	"context"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Bill says where the parts of a request for series would run. It asks nothing.
func (s *Source) Bill(_ context.Context, req *model.Request) error {
	s.explain(req)
	return nil
}

// BillText says where the parts of a request for lines would run. It asks nothing, and returns no cursors.
func (s *Source) BillText(_ context.Context, req *model.Request) ([]model.TextCursor, error) {
	s.explain(req)
	return nil, nil
}

func (s *Source) explain(req *model.Request) {
	if req.Cost.Bill.Coarse {
		return
	}
	a, ok := s.account(req)
	if !ok {
		return
	}
	if a.filter != "" {
		req.Cost.Bill.AddPlaced(model.Placed{Source: "victorialogs", Part: "the filter of the tenant", Where: model.Pushed, Reason: "only lines that pass it are sent"})
	}
	_, placed := translate(req, s.derives)
	p := model.Placed{Source: "victorialogs", Part: "lines", Where: model.Local, Reason: "stages run here, on pages of lines that are fetched when they are wanted"}
	switch c := req.Cells; {
	case req.Family != model.Text:
		p = model.Placed{Source: "victorialogs", Part: "streams", Where: model.Pushed, Reason: "the streams of the range are listed there"}
	case c != nil:
		p.Part, p.Where = "windows", model.Partial
		p.Reason = "lines are counted there in one cell, and added up here if the query needs no more than their number and the labels of streams"
		if c.Step > 0 {
			p.Reason = "lines are counted there in cells of " + time.Duration(c.Step).String() + ", " + "and added up here if the query needs no more than their number and the labels of streams"
		}
		if c.Step > 0 && uint64(req.Range.Max)-uint64(req.Range.Min) > uint64(c.Step)*maxCells {
			p.Where, p.Reason = model.Local, "the range has more than "+strconv.Itoa(maxCells)+" cells of "+time.Duration(c.Step).String()
		}
	}
	req.Cost.Bill.AddPlaced(append(placed, p)...)
}
