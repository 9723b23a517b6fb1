package renders

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/bench/proc"
)

// Server is a server of the render API.
type Server struct {
	Name, URL string
	// PIDs are its processes, whose CPU time is added up.
	PIDs []int
}

// ParseServer reads NAME=URL, or NAME=URL,PID,PID...
func ParseServer(text string) (Server, error) {
	name, rest, ok := strings.Cut(text, "=")
	parts := strings.Split(rest, ",")
	if u, err := url.Parse(parts[0]); !ok || err != nil || u.Host == "" {
		return Server{}, fmt.Errorf("%q is not NAME=URL or NAME=URL,PID", text)
	}
	s := Server{Name: name, URL: strings.TrimSuffix(parts[0], "/")}
	for _, p := range parts[1:] {
		pid, err := strconv.Atoi(p)
		if err != nil {
			return Server{}, fmt.Errorf("%q: %q is not the number of a process", text, p)
		}
		s.PIDs = append(s.PIDs, pid)
	}
	return s, nil
}

func (s *Server) cpu() (seconds float64, err error) {
	for _, pid := range s.PIDs {
		u, err := proc.Read(pid)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.Name, err)
		}
		seconds += u.CPU
	}
	return seconds, nil
}

// Options say what is measured.
type Options struct {
	Servers []Server
	// End is the time of the newest points.
	End time.Time
	// Rounds is how often each board is drawn by each server, in turn, a minute earlier each time.
	Rounds int
	// Browser is how many requests of a board are sent at one time.
	Browser int
	Log     io.Writer
}

// timeLimit ends a request.
const timeLimit = 5 * time.Minute

// bodyLimit bounds what is read of a response.
const bodyLimit = 64 << 20

// drawing is what one board took.
type drawing struct {
	took   time.Duration
	each   []time.Duration // of the panels
	cpu    float64
	failed int
	// responses are those of the panels; nil: it failed.
	responses [][]series
}

// Run measures, and writes a table.
func Run(ctx context.Context, o Options, out io.Writer) error {
	client := newClient(&o)
	defer client.CloseIdleConnections()
	fmt.Fprintln(out, "| | server | time, median | worst | CPU-s, median | errors | like the first |\n|"+strings.Repeat("---|", 7))
	for _, b := range boards() {
		drawn := make([][]drawing, len(o.Servers))
		for round := range o.Rounds {
			until := o.End.Add(-time.Duration(round+1) * time.Minute)
			for i := range o.Servers {
				d, err := draw(ctx, client, &o, &o.Servers[i], &b, until)
				if err != nil {
					return err
				}
				fmt.Fprintf(o.Log, "%s: %s: %v, %d errors\n", b.name, o.Servers[i].Name, d.took.Round(time.Millisecond), d.failed)
				drawn[i] = append(drawn[i], d)
			}
		}
		for i := range o.Servers {
			fmt.Fprintln(out, row(&b, o.Servers[i].Name, drawn[i], drawn[0], i == 0))
		}
	}
	return nil
}

func newClient(o *Options) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Browser, DisableCompression: true}, Timeout: timeLimit}
}

// draw asks for all panels of a board.
func draw(ctx context.Context, client *http.Client, o *Options, s *Server, b *board, until time.Time) (drawing, error) {
	d := drawing{each: make([]time.Duration, len(b.targets)), responses: make([][]series, len(b.targets))}
	before, err := s.cpu()
	if err != nil {
		return d, err
	}
	bodies := make([][]byte, len(b.targets))
	var next, wait = make(chan int, len(b.targets)), sync.WaitGroup{}
	for i := range b.targets {
		next <- i
	}
	close(next)
	began := time.Now()
	for range o.Browser {
		wait.Go(func() {
			for i := range next {
				began := time.Now()
				bodies[i] = get(ctx, client, s.URL+path(b.targets[i], until, b.span))
				d.each[i] = time.Since(began)
			}
		})
	}
	wait.Wait()
	d.took = time.Since(began)
	if err := ctx.Err(); err != nil {
		return d, err
	}
	after, err := s.cpu()
	if err != nil {
		return d, err
	}
	d.cpu = after - before
	for i, body := range bodies {
		if d.responses[i], err = parse(body); err != nil || len(d.responses[i]) == 0 {
			d.failed++
			d.responses[i] = nil
		}
	}
	return d, nil
}

// get returns the body of a response; nil: there was none with status 200.
func get(ctx context.Context, client *http.Client, target string) []byte {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return nil
	}
	req.Header.Set("Cache-Control", "no-cache") // a kept response would say nothing of the drawing
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return body
}

// row returns a row of the table.
func row(b *board, name string, all, reference []drawing, isReference bool) string {
	var took, cpu []float64
	failed, same, compared := 0, 0, 0
	for i, d := range all {
		took, cpu = append(took, d.took.Seconds()), append(cpu, d.cpu)
		failed += d.failed
		for k := range d.responses {
			if want := reference[i].responses[k]; want != nil {
				compared++
				if alike(want, d.responses[k]) {
					same++
				}
			}
		}
	}
	slices.Sort(took)
	slices.Sort(cpu)
	likeness := fmt.Sprintf("%d of %d", same, compared)
	if isReference {
		likeness = ""
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %.2f | %d | %s |", b.name, name, ms(took[len(took)/2]), ms(took[len(took)-1]), cpu[len(cpu)/2], failed, likeness)
}

func ms(seconds float64) string { return strconv.FormatFloat(1000*seconds, 'f', 0, 64) + " ms" }
