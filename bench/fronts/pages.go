package fronts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// PageOptions say what is measured of pages: what fronts ask the store for.
type PageOptions struct {
	Programs []Program
	// Backend is the URL of the store.
	Backend string
	// All is a selector of all lines, without its last brace, and Apps are values of the label app.
	All  string
	Apps []string
	Span time.Duration
	// Every is the time between two refreshes, and Refreshes how many follow the first one.
	Every     time.Duration
	Refreshes int
	// Fleet is how many fronts share the work.
	Fleet int
	// Dir gets the folders of fronts.
	Dir string
	// Now returns the end of the range of a page.
	Now func() time.Time
	// Log gets progress and the logs of fronts.
	Log io.Writer
}

// page is what a browser asks for at one time.
type page struct {
	name     string
	requests []request
}

// pageSteps is how many steps a graph has at most.
const pageSteps = 100

// pages returns a dashboard of 20 panels, and two pages of Logs Drilldown.
func (o *PageOptions) pages() []page {
	graph := func(query string) request {
		return request{query, "query_range", url.Values{"query": {query}}, pageSteps}
	}
	of := func(app string) string { return o.All + `,app="` + app + `"}` }
	all := o.All + "}"
	dashboard := page{name: "dashboard of 20 panels"}
	for i := 0; len(dashboard.requests) < 18; i++ {
		app := of(o.Apps[i/3%len(o.Apps)])
		dashboard.requests = append(dashboard.requests, graph([]string{
			"sum(count_over_time(" + app + "[" + interval + "]))", "sum by (level) (rate(" + app + "[" + interval + "]))", "sum by (pod) (bytes_rate(" + app + "[" + interval + "]))",
		}[i%3]))
	}
	dashboard.requests = append(dashboard.requests, graph("sum by (app) (rate("+all+"["+interval+"]))"), graph("topk(5, sum by (pod) (count_over_time("+all+"["+interval+"])))"))
	services := page{"Drilldown, all services", []request{
		{"volume", "index/volume", url.Values{"query": {all}, "targetLabels": {"app"}, "limit": {"1000"}}, 0},
		{"labels", "labels", url.Values{"query": {all}}, 0},
		{"detected_labels", "detected_labels", url.Values{"query": {all}}, 0},
	}}
	for _, app := range o.Apps[:min(len(o.Apps), 4)] {
		services.requests = append(services.requests, graph("sum by (level) (count_over_time("+of(app)+"["+interval+"]))"),
			request{"lines", "query_range", url.Values{"query": {of(app)}, "limit": {"100"}}, 0})
	}
	one := of(o.Apps[0])
	service := page{"Drilldown, one service", []request{
		{"lines", "query_range", url.Values{"query": {one}, "limit": {"1000"}}, 0},
		graph("sum by (level) (count_over_time(" + one + "[" + interval + "]))"),
		{"volume", "index/volume", url.Values{"query": {one}, "targetLabels": {"pod"}, "limit": {"1000"}}, 0},
		{"detected_labels", "detected_labels", url.Values{"query": {one}}, 0},
		{"detected_fields", "detected_fields", url.Values{"query": {one}, "line_limit": {"1000"}, "limit": {"1000"}}, 0},
		{"patterns", "patterns", url.Values{"query": {one}}, pageSteps},
	}}
	return []page{dashboard, services, service}
}

// RunPages measures each program and writes a table of requests to the store and their bytes, for each
// refresh of each page.
func RunPages(ctx context.Context, o PageOptions, out io.Writer) error {
	b, err := newBackend(o.Backend)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| page | front | state | requests to the store | MB from it | errors |\n|"+strings.Repeat("---|", 6))
	for _, p := range o.Programs {
		m := &pageMeasurement{PageOptions: o, program: p, store: b, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}, out: out}
		if err = m.run(ctx); err != nil {
			break
		}
	}
	return errors.Join(err, b.close())
}

type pageMeasurement struct {
	PageOptions
	program Program
	store   *backend
	client  *http.Client
	out     io.Writer
}

// run measures one front that is new, then after a restart, and then several that share the work.
func (m *pageMeasurement) run(ctx context.Context) error {
	addresses, err := freeAddresses(1 + m.Fleet)
	if err != nil {
		return err
	}
	pages := m.pages()
	alone := func(state string, more string) error {
		r, err := m.program.start(ctx, addresses[0], addresses[0], m.store.url, filepath.Join(m.Dir, m.program.Name+"-0"), m.Log)
		if err != nil {
			return err
		}
		defer r.stop()
		return m.refresh(ctx, pages, []*running{r}, state, more)
	}
	if err := errors.Join(alone("cold", "warm"), alone("after a restart", "")); err != nil || m.Fleet == 0 {
		return err
	}
	var fleet []*running
	defer func() {
		for _, r := range fleet {
			r.stop()
		}
	}()
	for i, at := range addresses[1:] {
		r, err := m.program.start(ctx, at, strings.Join(addresses[1:], ","), m.store.url, filepath.Join(m.Dir, fmt.Sprintf("%s-%d", m.program.Name, i+1)), m.Log)
		if err != nil {
			return err
		}
		fleet = append(fleet, r)
	}
	return m.refresh(ctx, pages, fleet, fmt.Sprintf("%d fronts, cold", m.Fleet), fmt.Sprintf("%d fronts, warm", m.Fleet))
}

// spent is what refreshes have taken.
type spent struct {
	refreshes, failed int
	requests, bytes   int64
}

// refresh shows all pages, and shows them again if more names a state. Each refresh goes to the next front.
func (m *pageMeasurement) refresh(ctx context.Context, pages []page, fronts []*running, state, more string) error {
	first, later := make([]spent, len(pages)), make([]spent, len(pages))
	rounds := 1
	if more != "" {
		rounds += m.Refreshes
	}
	next := time.Now()
	for round := range rounds {
		fmt.Fprintf(m.Log, "%s, %s: refresh %d\n", m.program.Name, state, round+1)
		for i := range pages {
			into := &first[i]
			if round > 0 {
				into = &later[i]
			}
			m.show(ctx, &pages[i], fronts[round%len(fronts)].Front, into)
		}
		if next = next.Add(m.Every); round+1 < rounds {
			select {
			case <-time.After(time.Until(next)):
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for i := range pages {
		m.row(&pages[i], state, &first[i])
		if more != "" {
			m.row(&pages[i], more, &later[i])
		}
	}
	return nil
}

func (m *pageMeasurement) row(p *page, state string, s *spent) {
	n := float64(max(1, s.refreshes))
	fmt.Fprintf(m.out, "| %s | %s | %s | %.1f | %.2f | %d |\n", p.name, m.program.Name, state, float64(s.requests)/n, float64(s.bytes)/n/1e6, s.failed)
}

// browserConnections is how many requests a browser sends to one server at one time.
const browserConnections = 6

// show asks for a page. Times are multiples of the step, as the front end of Loki makes them.
func (m *pageMeasurement) show(ctx context.Context, p *page, f Front, s *spent) {
	requests, bytes := m.store.requests.Load(), m.store.bytes.Load()
	to := m.Now()
	todo := make(chan *request, len(p.requests))
	for i := range p.requests {
		todo <- &p.requests[i]
	}
	close(todo)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range browserConnections {
		asking.Go(func() {
			for r := range todo {
				end := to
				if r.steps > 0 {
					end = to.Truncate(step(m.Span, r.steps))
				}
				if a := ask(ctx, m.client, f, r.target(end.Add(-m.Span), end)); a.status != http.StatusOK {
					mu.Lock()
					s.failed++
					mu.Unlock()
				}
			}
		})
	}
	asking.Wait()
	s.refreshes++
	s.requests += m.store.requests.Load() - requests
	s.bytes += m.store.bytes.Load() - bytes
}
