package main

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
	// linesPerPage is how many lines a page asks for, of any server: Loki allows 5000 by default.
	linesPerPage = 1000
	// maxLinesPerPage bounds what a page may grow to where a server sets no bound.
	maxLinesPerPage = linesPerPage << 10
)

// logPages asks for the lines of a range page by page.
type logPages struct {
	query    *queryCmd // whom to ask what, and in which direction
	base     *url.URL
	from, to int64 // what is still to be asked for, in Unix nanoseconds: the first included, the second not
	left     int   // lines that are still wanted at most; 0: all
	done     bool

	size   int // lines of the next page; 0: linesPerPage
	most   int // what the server allows, once it has said so; 0: not known
	parser fastjson.Parser
}

// answerError is an answer that does not help, and will not if it is asked for again.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

// next returns the lines of the next page, none and done after the last one. They are valid until the next call.
func (p *logPages) next(ctx context.Context) ([]logLine, error) {
	for {
		if p.done || p.from >= p.to {
			p.done = true
			return nil, nil
		}
		ask := p.ask()
		lines, err := p.page(ctx, ask)
		if most := allowed(err); most > 0 && most < ask {
			p.most = most
			continue
		}
		if err != nil {
			return nil, err
		}
		sortLines(lines, p.query.Forward)
		// A full page ends the answer, or goes on within the time of its last line: those of that time are asked for again.
		if len(lines) < ask || p.left == ask {
			p.done = true
			return lines, nil
		}
		last := lines[len(lines)-1].at
		keep := slices.IndexFunc(lines, func(l logLine) bool { return l.at == last })
		if keep == 0 {
			if ask == p.most || ask >= maxLinesPerPage {
				return nil, answerError{fmt.Errorf("more than %d lines have the time %d, and the server returns no more at once; narrow the query", ask-1, last)}
			}
			p.size = 2 * ask
			continue
		}
		if p.query.Forward {
			p.from = last
		} else {
			p.to = last + 1
		}
		if p.left > 0 {
			p.left -= keep
		}
		p.size = 0
		return lines[:keep], nil
	}
}

// ask returns how many lines to ask for.
func (p *logPages) ask() int {
	ask := max(p.size, linesPerPage)
	if p.left > 0 {
		ask = min(ask, p.left)
	}
	if p.most > 0 {
		ask = min(ask, p.most)
	}
	return ask
}

func (p *logPages) page(ctx context.Context, ask int) ([]logLine, error) {
	body, err := p.body(ctx, ask)
	if err != nil {
		return nil, err
	}
	lines, err := parseLogLines(&p.parser, body)
	if err != nil {
		return nil, answerError{fmt.Errorf("%s: %w", p.query.URL, err)}
	}
	return lines, nil
}

// body returns the server's answer as it comes.
func (p *logPages) body(ctx context.Context, ask int) ([]byte, error) {
	form := url.Values{
		"query": {p.query.Expr}, "direction": {"backward"}, "limit": {strconv.Itoa(ask)},
		"start": {strconv.FormatInt(p.from, 10)}, "end": {strconv.FormatInt(p.to, 10)},
	}
	if p.query.Forward {
		form.Set("direction", "forward")
	}
	return p.query.ask(ctx, p.base.JoinPath("loki/api/v1/query_range").String(), form)
}

// allowed returns how many lines a server allows that refuses to give more, and 0 of another error. Servers say both numbers,
// that which was asked for first: "limit > max_entries_limit_per_query (8000 > 5000)".
func allowed(err error) int {
	var refused *statusError
	if !errors.As(err, &refused) || refused.status != http.StatusBadRequest {
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
