package fronts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Front is a server of Loki's API.
type Front struct{ Name, URL string }

// Options say what is measured.
type Options struct {
	Fronts []Front
	// All and Some are selectors: of all lines, and of a small part of them.
	All, Some string
	// End is when the newest line was sent.
	End   time.Time
	Spans []time.Duration
	// Asks is how often each request is sent cold, and how often warm.
	Asks int
	// Clients are the numbers of clients at one time, each for the time Phase.
	Clients []int
	Phase   time.Duration
	// Log gets progress.
	Log io.Writer
}

// bodyLimit bounds what is read of a response.
const bodyLimit = 64 << 20

// timeLimit ends a request.
const timeLimit = time.Minute

// answer is a response.
type answer struct {
	took   time.Duration
	status int // 0: none came
	body   []byte
}

func ask(ctx context.Context, c *http.Client, f Front, target string) answer {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+target, http.NoBody)
	if err != nil {
		return answer{took: time.Since(began)}
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{took: time.Since(began)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
	a := answer{took: time.Since(began), status: resp.StatusCode, body: body}
	if err != nil {
		a.status = 0
	}
	return a
}

// Run measures and writes tables.
func Run(ctx context.Context, o Options, out io.Writer) error {
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	defer transport.CloseIdleConnections()
	m := &measurement{Options: o, client: &http.Client{Transport: transport}}
	return errors.Join(m.one(ctx, out), m.many(ctx, out))
}

type measurement struct {
	Options
	client *http.Client
	slid   int // seconds by which ranges have slid, so that no range is asked twice
}

// window returns a range that no front has been asked for.
func (m *measurement) window(span time.Duration) (from, to time.Time) {
	m.slid++
	to = m.End.Add(-time.Duration(m.slid) * time.Second)
	return to.Add(-span), to
}

// one measures each request alone: cold with ranges that slide, and warm with one range.
func (m *measurement) one(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "| request | front | cold p50 | p99 | warm p50 | p99 | errors | like the first |\n|"+strings.Repeat("---|", 8))
	for _, span := range m.Spans {
		for _, r := range requests(m.All, m.Some) {
			var colds [][2]time.Time
			for range m.Asks {
				from, to := m.window(span)
				colds = append(colds, [2]time.Time{from, to})
			}
			first := make([]string, m.Asks)
			for i, f := range m.Fronts {
				cold, warm := make([]time.Duration, 0, m.Asks), make([]time.Duration, 0, m.Asks)
				failed, same, compared := 0, 0, 0
				for k, w := range colds {
					a := ask(ctx, m.client, f, r.target(w[0], w[1]))
					cold = append(cold, a.took)
					if a.status != http.StatusOK {
						failed++
						continue
					}
					text, err := content(r.path, a.body)
					switch {
					case err != nil:
						failed++
					case i == 0:
						first[k] = text
					case first[k] != "" || text != "":
						compared++
						if text == first[k] {
							same++
						}
					}
				}
				last := colds[len(colds)-1]
				for range m.Asks {
					a := ask(ctx, m.client, f, r.target(last[0], last[1]))
					warm = append(warm, a.took)
					if a.status != http.StatusOK {
						failed++
					}
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				likeness := ""
				if compared > 0 {
					likeness = fmt.Sprintf("%d of %d", same, compared)
				}
				fmt.Fprintf(out, "| %s, %s | %s | %s | %s | %s | %s | %d | %s |\n", r.name, days(span), f.Name,
					ms(percentile(cold, 50)), ms(percentile(cold, 99)), ms(percentile(warm, 50)), ms(percentile(warm, 99)), failed, likeness)
			}
		}
	}
	fmt.Fprintln(out)
	return nil
}

// many measures many clients at one time, each with a mix of all requests over the shortest span: cold with
// ranges that slide, and warm with a few.
func (m *measurement) many(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "| clients | | front | requests/s | p50 | p99 | errors |\n|"+strings.Repeat("---|", 7))
	all := requests(m.All, m.Some)
	for _, n := range m.Clients {
		for _, warm := range []bool{false, true} {
			for _, f := range m.Fronts {
				fmt.Fprintf(m.Log, "%d clients, %s\n", n, f.Name)
				var next, done sync.Mutex
				var took []time.Duration
				failed, asked := 0, 0
				from, to := m.window(m.Spans[0])
				deadline := time.Now().Add(m.Phase)
				var clients sync.WaitGroup
				began := time.Now()
				for range n {
					clients.Go(func() {
						for time.Now().Before(deadline) && ctx.Err() == nil {
							next.Lock()
							r := &all[asked%len(all)]
							asked++
							if !warm {
								from, to = m.window(m.Spans[0])
							}
							target := r.target(from, to)
							next.Unlock()
							a := ask(ctx, m.client, f, target)
							done.Lock()
							took = append(took, a.took)
							if a.status != http.StatusOK {
								failed++
							}
							done.Unlock()
						}
					})
				}
				clients.Wait()
				seconds := time.Since(began).Seconds()
				if err := ctx.Err(); err != nil {
					return err
				}
				kind := map[bool]string{false: "cold", true: "warm"}[warm]
				fmt.Fprintf(out, "| %d | %s | %s | %.0f | %s | %s | %d |\n", n, kind, f.Name, float64(len(took)-failed)/seconds, ms(percentile(took, 50)), ms(percentile(took, 99)), failed)
			}
		}
	}
	return nil
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*p/100)]
}

func ms(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + " ms"
}

func days(d time.Duration) string {
	if d%(24*time.Hour) == 0 && d > 24*time.Hour {
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}

// ParseFront reads NAME=URL.
func ParseFront(text string) (Front, error) {
	name, address, ok := strings.Cut(text, "=")
	if u, err := url.Parse(address); !ok || err != nil || u.Host == "" {
		return Front{}, fmt.Errorf("%q is not NAME=URL", text)
	}
	return Front{name, strings.TrimSuffix(address, "/")}, nil
}
