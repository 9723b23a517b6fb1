package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// Bill is what a server says that a query would read from its bucket.
type Bill struct {
	Blocks      int64  `json:"blocks"`
	Pages       int64  `json:"pages"`
	PagesCached int64  `json:"pagesCached"`
	Index       Priced `json:"index"`
	Least       Priced `json:"least"`
	Likely      Priced `json:"likely"`
	Most        Priced `json:"most"`
	EndsEarly   bool   `json:"endsEarly"`
	Assumed     struct {
		RequestSeconds float64 `json:"requestSeconds"`
		Measured       bool    `json:"measured"`
		Parallel       int64   `json:"parallel"`
		Queries        int64   `json:"queries"`
	} `json:"assumed"`
}

// Priced are requests and bytes with what they cost.
type Priced struct {
	Requests int64   `json:"requests"`
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"`
	Dollars  float64 `json:"dollars"`
}

// Explain asks for the bill of a query at an endpoint, and returns the response as it came, too. A server
// other than Shale runs the query instead, which is an error.
func (s *Server) Explain(ctx context.Context, endpoint string, form url.Values) (body []byte, bill *Bill, err error) {
	form.Set("explain", "true")
	if body, err = s.PostForm(ctx, endpoint, form); err != nil {
		return nil, nil, err
	}
	var got struct {
		Bill *Bill `json:"bill"`
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Bill == nil {
		return nil, nil, invalid(fmt.Errorf("%s: the response has no bill: the server does not support explain=true: %.200q", s.URL, body))
	}
	return body, got.Bill, nil
}
