package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Index lists the labels and the series that a server has of one signal in a time range, without their rows:
// by the Prometheus API, or of logs by Loki's.
type Index struct {
	Server   *Server
	Logs     bool
	From, To time.Time
}

// Names lists the names of labels of the series that the selector selects; of all if it is empty. A limit
// other than 0 bounds the list; of logs, the list is always whole.
func (x *Index) Names(ctx context.Context, selector string, limit int) (names []string, err error) {
	err = x.list(ctx, "labels", x.form("query", selector, limit), &names)
	return names, err
}

// Values lists the values of a label, as Names does.
func (x *Index) Values(ctx context.Context, name, selector string, limit int) (values []string, err error) {
	err = x.list(ctx, "label/"+model.EscapeName(name, model.ValueEncodingEscaping)+"/values", x.form("query", selector, limit), &values)
	return values, err
}

// Series lists the label sets of series, as Names does, in no order.
func (x *Index) Series(ctx context.Context, selector string, limit int) (series []map[string]string, err error) {
	err = x.list(ctx, "series", x.form("match[]", selector, limit), &series)
	return series, err
}

// LineVolume is how much a server has of streams. A server may count lines twice that are stored twice.
type LineVolume struct {
	Streams int64 `json:"streams"`
	Lines   int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// LineVolume returns how much there is of the streams that a selector selects.
func (x *Index) LineVolume(ctx context.Context, selector string) (v LineVolume, err error) {
	body, err := x.Server.PostForm(ctx, "loki/api/v1/index/stats", x.form("query", selector, 0))
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, invalid(fmt.Errorf("%s: the response is not of the Loki API: %w", x.Server.URL, err))
	}
	return v, nil
}

// form returns the parameters of a request. The parameter for the selector has another name in Loki.
func (x *Index) form(loki, selector string, limit int) url.Values {
	form := url.Values{}
	key := "match[]"
	if x.Logs {
		key = loki
		form.Set("start", strconv.FormatInt(x.From.UnixNano(), 10))
		form.Set("end", strconv.FormatInt(x.To.UnixNano(), 10))
	} else {
		form.Set("start", strconv.FormatFloat(float64(x.From.UnixMilli())/1000, 'f', 3, 64))
		form.Set("end", strconv.FormatFloat(float64(x.To.UnixMilli())/1000, 'f', 3, 64))
		if limit > 0 {
			form.Set("limit", strconv.Itoa(limit))
		}
	}
	if selector != "" {
		form.Set(key, selector)
	}
	return form
}

// list requests a list, which Loki leaves out if it is empty. It sorts strings.
func (x *Index) list(ctx context.Context, path string, form url.Values, into any) error {
	dialect, ask := "Prometheus", x.Server.PostForm
	if strings.HasPrefix(path, "label/") { // Prometheus lists values by GET alone
		ask = x.Server.Get
	}
	path = "api/v1/" + path
	if x.Logs {
		dialect, path = "Loki", "loki/"+path
	}
	body, err := ask(ctx, path, form)
	if err != nil {
		return err
	}
	var got Envelope
	err = json.Unmarshal(body, &got)
	switch {
	case err == nil && got.Status != "success":
		err = fmt.Errorf("%.200q", body)
	case err == nil && len(got.Data) > 0:
		err = json.Unmarshal(got.Data, into)
	}
	if err != nil {
		return invalid(fmt.Errorf("%s: the response is not of the %s API: %w", x.Server.URL, dialect, err))
	}
	if texts, ok := into.(*[]string); ok {
		slices.Sort(*texts)
	}
	return nil
}
