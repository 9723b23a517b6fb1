package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/shaledb/shale/internal/model"
)

// openAccount begins to count what the request reads of the bucket, and reads the parameter explain.
func (c *call) openAccount() error {
	if c.o.Budgets == nil {
		return nil
	}
	c.account = c.o.Budgets.Open(c.r.Tenants)
	c.r.Cost.Spend = c.account.Spend
	text := c.r.Form.Get("explain") // there is no form if the body is the content
	switch {
	case text == "" || text == "false":
		return nil
	case text != "true":
		return badExplain(fmt.Errorf("explain: expected true or false, got %.200q", text))
	case c.e.Explained == "":
		return badExplain(errors.New("explain: this endpoint has no bill; ask for that of query, query_range or series"))
	}
	c.explains = true
	return nil
}

func badExplain(err error) error { return &Error{Status: http.StatusBadRequest, Err: err} }

// bill returns what the request would read of the bucket, what it took to find that out, and where its parts
// run that read from another server. It serves the request without running its query.
func (c *call) bill(coarse bool) (f model.BillFigures, index model.Reads, placed []model.Placed, err error) {
	whole, before := c.r.Cost, c.r.Quota.Charged()
	dry := &model.Cost{Bill: &model.Bill{Coarse: coarse}, Spend: whole.Spend}
	dry.SetQueryID(whole.QueryID())
	c.r.Cost = dry
	defer func() {
		c.r.Cost = whole
		index = model.Reads{Requests: dry.BucketRequests.Load(), Bytes: dry.BytesBucket.Load()}
		whole.BucketRequests.Add(index.Requests)
		whole.BytesBucket.Add(index.Bytes)
		whole.PagesBucket.Add(dry.PagesBucket.Load())
	}()
	res, err := c.e.Serve(c.r)
	if err != nil {
		return f, index, nil, err
	}
	if res.Done != nil {
		res.Done()
	}
	c.r.Quota.Revert(before)
	return dry.Bill.Figures(), index, dry.Bill.Placed(), nil
}

// admit refuses a request that reads more than a budget has room for, whatever its result is. A query that
// may read less runs, and ends where a budget does.
func (c *call) admit() error {
	if c.admitted || c.account == nil || !c.account.Limited() {
		return nil
	}
	// Most queries are so small that the sizes of their blocks show it.
	f, _, _, err := c.bill(true)
	if err != nil {
		return err
	}
	if !f.EndsEarly && !c.account.Fits(f.Most) {
		f, index, _, err := c.bill(false)
		if err != nil {
			return err
		}
		if err := c.account.Check(c.o.Budgets.State(f, index, c.running())); err != nil {
			return err
		}
	}
	c.admitted = true
	return nil
}

func (c *call) running() int64 { return int64(c.o.Slots.Running()) }

// explain sends the bill of the request instead of its result.
func (c *call) explain() error {
	f, index, placed, err := c.bill(false)
	if err != nil {
		return err
	}
	statement, err := json.Marshal(c.o.Budgets.State(f, index, c.running()))
	if err != nil {
		return err
	}
	var parts []byte
	if len(placed) > 0 {
		if parts, err = json.Marshal(placed); err != nil {
			return err
		}
	}
	return c.send(&Response{Write: func(b *Body) error {
		b.Raw(`{"status":"success","data":`)
		b.Raw(c.e.Explained)
		b.Raw(`,"bill":`)
		b.Buf = append(b.Buf, statement...)
		if parts != nil {
			b.Raw(`,"placed":`)
			b.Buf = append(b.Buf, parts...)
		}
		b.Raw("}\n")
		return nil
	}})
}
