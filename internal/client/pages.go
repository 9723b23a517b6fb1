package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	"github.com/valyala/fastjson"
)

const (
	// LinesPerPage is how many lines a page asks for, of any server: Loki allows 5000 by default.
	LinesPerPage = 1000
	// maxLinesPerPage bounds what a page may grow to where a server sets no bound.
	maxLinesPerPage = LinesPerPage << 10
)

// Pages reads the lines of a time range page by page.
type Pages struct {
	Server   *Server
	Base     *url.URL
	Expr     string
	Forward  bool  // oldest lines first
	From, To int64 // what is still to be asked for, in Unix nanoseconds: the first included, the second not
	Left     int   // lines that are still wanted at most; 0: all
	Done     bool

	size   int // lines of the next page; 0: linesPerPage
	Most   int // what the server allows, once it has said so; 0: not known
	Parser fastjson.Parser
}

// UnusableError is a response that cannot be used; a retry would not help.
type UnusableError struct{ error }

func (e UnusableError) Unwrap() error { return e.error }

// Next returns the lines of the next page, none and done after the last one. They are valid until the next
// call.
func (p *Pages) Next(ctx context.Context) ([]Line, error) {
	for {
		if p.Done || p.From >= p.To {
			p.Done = true
			return nil, nil
		}
		ask := p.ask()
		lines, err := p.page(ctx, ask)
		if most := AllowedLines(err); most > 0 && most < ask {
			p.Most = most
			continue
		}
		if err != nil {
			return nil, err
		}
		SortLines(lines, p.Forward)
		// A full page ends the answer, or goes on within the time of its last line: those of that time are
		// asked for again.
		if len(lines) < ask || p.Left == ask {
			p.Done = true
			return lines, nil
		}
		last := lines[len(lines)-1].At
		keep := slices.IndexFunc(lines, func(l Line) bool { return l.At == last })
		if keep == 0 {
			if ask == p.Most || ask >= maxLinesPerPage {
				return nil, UnusableError{fmt.Errorf("more than %d lines have the time %d, and the server returns no more at once; narrow the query", ask-1, last)}
			}
			p.size = 2 * ask
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
		p.size = 0
		return lines[:keep], nil
	}
}

// ask returns how many lines to ask for.
func (p *Pages) ask() int {
	ask := max(p.size, LinesPerPage)
	if p.Left > 0 {
		ask = min(ask, p.Left)
	}
	if p.Most > 0 {
		ask = min(ask, p.Most)
	}
	return ask
}

func (p *Pages) page(ctx context.Context, ask int) ([]Line, error) {
	body, err := p.Body(ctx, ask)
	if err != nil {
		return nil, err
	}
	lines, err := ParseLines(&p.Parser, body)
	if err != nil {
		return nil, UnusableError{fmt.Errorf("%s: %w", p.Server.URL, err)}
	}
	return lines, nil
}

// Body returns the server's answer as it comes.
func (p *Pages) Body(ctx context.Context, ask int) ([]byte, error) {
	form := url.Values{
		"query": {p.Expr}, "direction": {"backward"}, "limit": {strconv.Itoa(ask)},
		"start": {strconv.FormatInt(p.From, 10)}, "end": {strconv.FormatInt(p.To, 10)},
	}
	if p.Forward {
		form.Set("direction", "forward")
	}
	return p.Server.Ask(ctx, p.Base.JoinPath("loki/api/v1/query_range").String(), form)
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
