package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"
)

const (
	// linesPerPage is how many lines a page asks for, of any server: Loki allows 5000 by default.
	linesPerPage = 1000
	// maxLinesPerPage bounds the growth of a page where a server sets no bound.
	maxLinesPerPage = linesPerPage << 10
)

// Pages reads the lines of a time range page by page.
type Pages struct {
	Server   *Server
	Expr     string
	Forward  bool  // oldest lines first
	From, To int64 // the rest of the range, in Unix nanoseconds: From is included, To is not
	Left     int   // lines that are still wanted at most; 0: all
	Size     int   // lines of a page; 0: 1000
	Most     int   // lines that the server allows at once; 0: not known until it says so
	// Metadata asks for structured metadata apart from labels.
	Metadata bool
	// Cost, unless it is nil, gets the sums of the figures in the statistics of all responses, by their names:
	// summary.totalLinesProcessed.
	Cost map[string]float64
	// Warn, unless it is nil, gets each different warning of the responses once.
	Warn func(text string)
	Done bool

	warned map[string]bool
	grown  int // lines of the next page, if many have one time
	// noTies is the refusal of the server if the lines of one time did not fit into a response together.
	noTies error
	// stuck is the error of the next call: the server does not give all lines of one time.
	stuck  error
	parser fastjson.Parser
}

// Next returns the lines of the next page. They are valid until the next call. After the last page, Done is
// set.
func (p *Pages) Next(ctx context.Context) ([]Line, error) {
	for {
		if p.Done || p.From >= p.To {
			p.Done = true
			return nil, nil
		}
		if p.stuck != nil {
			return nil, p.stuck
		}
		limit := p.limit()
		_, lines, whole, err := p.request(ctx, limit, true)
		if most := AllowedLines(err); most > 0 && most < limit {
			p.Most = most
			continue
		}
		if p.noTies == nil && tooMuch(err) {
			p.noTies = err
			continue
		}
		if err != nil {
			return nil, err
		}
		sortLines(lines, p.Forward)
		if whole {
			return p.pass(lines, limit), nil
		}
		// A full page ends the range, or goes on within the time of its last line: the lines of that time are
		// requested with the next page.
		if len(lines) < limit || p.Left == limit {
			p.Done = true
			return lines, nil
		}
		last := lines[len(lines)-1].At
		keep := slices.IndexFunc(lines, func(l Line) bool { return l.At == last })
		if keep == 0 {
			if limit == p.Most || limit >= maxLinesPerPage {
				p.stuck = p.tooCrowded(limit-1, last)
				return lines, nil
			}
			p.grown = 2 * limit
			continue
		}
		if p.Forward {
			p.From = last
		} else {
			p.To = last + 1
		}
		if p.Left > 0 {
			p.Left -= keep
		}
		p.grown = 0
		return lines[:keep], nil
	}
}

// pass moves on after a page with all lines of its last time, and returns the lines that are wanted.
func (p *Pages) pass(lines []Line, limit int) []Line {
	switch {
	case len(lines) < limit:
		p.Done = true
		return lines
	case p.Left > 0 && len(lines) >= p.Left:
		p.Done = true
		return lines[:p.Left]
	case p.Left > 0:
		p.Left -= len(lines)
	}
	last := lines[len(lines)-1].At
	if p.Forward {
		p.From = last + 1
	} else {
		p.To = last
	}
	return lines
}

// tooCrowded is the error about a time with more lines than the server returns at once.
func (p *Pages) tooCrowded(lines int, at int64) error {
	err := fmt.Errorf("more than %d lines have the time %d, and the server returns no more at once; narrow the query", lines, at)
	if p.noTies != nil {
		err = fmt.Errorf("%w: %w", err, p.noTies)
	}
	return invalid(err)
}

// limit returns how many lines to ask for.
func (p *Pages) limit() int {
	limit := max(p.grown, cmp.Or(p.Size, linesPerPage))
	if p.Left > 0 {
		limit = min(limit, p.Left)
	}
	if p.Most > 0 {
		limit = min(limit, p.Most)
	}
	return limit
}

// Request asks for lines once, without moving on, and returns the response as it came and its lines.
func (p *Pages) Request(ctx context.Context, limit int) (body []byte, lines []Line, err error) {
	body, lines, _, err = p.request(ctx, limit, false)
	return body, lines, err
}

// encodingFlags is a header of Loki.
const encodingFlags = "X-Loki-Response-Encoding-Flags"

// request asks for lines once. For paging it asks Shale for exact lines and whole pages: beyond the limit,
// these have all lines of their last time. Loki ignores both.
func (p *Pages) request(ctx context.Context, limit int, paging bool) (body []byte, lines []Line, whole bool, err error) {
	form := p.form(limit)
	var flags []string
	ties := ""
	if p.Metadata {
		flags = append(flags, "categorize-labels")
	}
	if paging {
		flags = append(flags, base64Lines)
	}
	if paging && p.noTies == nil {
		ties = "all"
		if p.Left > 0 {
			ties = strconv.Itoa(p.Left)
		}
		form.Set("ties", ties)
	}
	header := http.Header{}
	if len(flags) > 0 {
		header.Set(encodingFlags, strings.Join(flags, ","))
	}
	body, got, err := p.Server.postForm(ctx, "loki/api/v1/query_range", form, header)
	if err != nil {
		return nil, nil, false, err
	}
	v, err := p.parser.ParseBytes(body)
	if err != nil {
		return nil, nil, false, invalid(fmt.Errorf("%s: the response is not of the Loki API: %w", p.Server.URL, err))
	}
	if lines, err = readLines(v, body); err != nil {
		return nil, nil, false, invalid(fmt.Errorf("%s: %w", p.Server.URL, err))
	}
	for _, w := range v.GetArray("warnings") {
		if text := string(w.GetStringBytes()); p.Warn != nil && !p.warned[text] {
			if p.warned == nil {
				p.warned = make(map[string]bool)
			}
			p.warned[text] = true
			p.Warn(text)
		}
	}
	if p.Cost != nil {
		addFigures(p.Cost, "", v.GetObject("data", "stats"))
	}
	return body, lines, ties != "" && got.Get("Shale-Ties") == ties, nil
}

// Form returns the parameters of the request for the next page.
func (p *Pages) Form() url.Values { return p.form(p.limit()) }

func (p *Pages) form(limit int) url.Values {
	form := url.Values{
		"query": {p.Expr}, "direction": {"backward"}, "limit": {strconv.Itoa(limit)},
		"start": {strconv.FormatInt(p.From, 10)}, "end": {strconv.FormatInt(p.To, 10)},
	}
	if p.Forward {
		form.Set("direction", "forward")
	}
	return form
}

// tooMuch reports whether a server refused a query because its lines need too much memory.
func tooMuch(err error) bool {
	var refused *StatusError
	return errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.text, "query.max-bytes")
}

// addFigures adds the numbers of an object and of those in it. Rates have no sum, so they are left out.
func addFigures(sums map[string]float64, prefix string, o *fastjson.Object) {
	if o == nil {
		return
	}
	o.Visit(func(name []byte, v *fastjson.Value) {
		switch full := prefix + string(name); {
		case v.Type() == fastjson.TypeObject:
			addFigures(sums, full+".", v.GetObject())
		case v.Type() == fastjson.TypeNumber && !strings.HasSuffix(full, "PerSecond"):
			sums[full] += v.GetFloat64()
		}
	})
}

// AllowedLines returns how many lines a server allows that refuses to give more, and 0 of another error.
// Servers say both numbers, that which was asked for first: "limit > max_entries_limit_per_query (8000 >
// 5000)".
func AllowedLines(err error) int {
	var refused *StatusError
	if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
		return 0
	}
	found := regexp.MustCompile(`max entries limit.*\(\d+ > (\d+)\)`).FindStringSubmatch(refused.Error())
	if found == nil {
		return 0
	}
	most, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return most
}
