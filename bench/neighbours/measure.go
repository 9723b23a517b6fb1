package neighbours

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/bench/result"
)

// Options say what is measured.
type Options struct {
	URL string
	// Tenants are those that behave.
	Tenants int
	Rounds  int
	// Phase is how long each half of a round takes: without and with the tenant that misbehaves.
	Phase time.Duration
	Ways  []Way
	// Misbehave runs the tenant that misbehaves, and returns how often it got which status.
	Misbehave func(ctx context.Context, w *Way) (map[int]int, error)
	// Control is [Way.Alone]; nil: there is no control.
	Control func(ctx context.Context, w *Way, got map[int]int) error
	// Log gets progress.
	Log io.Writer
}

// Run measures each way and writes a table. Its error says what the other tenants have lost.
func Run(ctx context.Context, o Options, out io.Writer) error {
	if err := Prepare(ctx, o.URL); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	crowd := newCrowd(o.URL, o.Tenants)
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() { defer close(ended); crowd.run(running) }()
	if err := wait(ctx, o.Phase); err != nil { // the series are new, and connections are opened
		return err
	}
	var text strings.Builder
	text.WriteString("| misbehaviour | responses | writes p50 | p99 | with it p50 | p99 | ratio of p99 | queries p50 | p99 | with it p50 | p99 | ratio of p99 | others refused | clients alone: writes | queries |\n|" + strings.Repeat("---|", 15) + "\n")
	refused := 0
	for i := range o.Ways {
		row, n, err := o.measure(ctx, crowd, &o.Ways[i])
		if err != nil {
			return err
		}
		text.WriteString(row)
		fmt.Fprint(o.Log, row)
		refused += n
	}
	stop()
	<-ended
	acked, missing, err := crowd.lost()
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n%d tenants, %d rounds of 2 x %s; of %d acknowledged samples %d are missing, and %d requests were refused\n", o.Tenants, o.Rounds, o.Phase, acked, missing, refused)
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	if missing != 0 {
		return fmt.Errorf("%d acknowledged samples are missing", missing)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// measure makes the row of one way: medians over the rounds.
func (o *Options) measure(ctx context.Context, crowd *crowd, w *Way) (row string, refused int, err error) {
	names := []string{"w50", "w99", "W50", "W99", "wr", "q50", "q99", "Q50", "Q99", "qr"}
	controls := map[string][]float64{}
	all := map[string][]float64{}
	statuses := map[int]int{}
	for range o.Rounds {
		crowd.take()
		if err := wait(ctx, o.Phase); err != nil {
			return "", 0, err
		}
		quiet := crowd.take()
		storm, cancel := context.WithTimeout(ctx, o.Phase)
		got, err := o.Misbehave(storm, w)
		cancel()
		loud := crowd.take()
		if err != nil {
			return "", 0, err
		}
		for status, n := range got {
			statuses[status] += n
		}
		if quiet.refused+loud.refused > 0 {
			fmt.Fprintf(o.Log, "%s: %d refused before, %d with it: %s %s\n", w.Name, quiet.refused, loud.refused, quiet.example, loud.example)
		}
		refused += loud.refused
		q := func(list []float64, at float64) float64 { return result.Quantile(list, at) }
		v := []float64{q(quiet.writes, 0.5), q(quiet.writes, 0.99), q(loud.writes, 0.5), q(loud.writes, 0.99), 0, q(quiet.queries, 0.5), q(quiet.queries, 0.99), q(loud.queries, 0.5), q(loud.queries, 0.99), 0}
		v[4], v[9] = v[3]/v[1], v[8]/v[6]
		for i, name := range names {
			all[name] = append(all[name], v[i])
		}
		if err := wait(ctx, 2*time.Second); err != nil { // what is in progress ends
			return "", 0, err
		}
		if o.Control == nil {
			continue
		}
		crowd.take()
		alone, cancel := context.WithTimeout(ctx, o.Phase)
		err = o.Control(alone, w, got)
		cancel()
		if err != nil {
			return "", 0, err
		}
		control := crowd.take()
		controls["w"] = append(controls["w"], q(control.writes, 0.99)/v[1])
		controls["q"] = append(controls["q"], q(control.queries, 0.99)/v[6])
	}
	cells := []string{w.Name, counts(statuses)}
	for _, name := range names {
		m := result.Quantile(all[name], 0.5)
		if strings.HasSuffix(name, "r") {
			cells = append(cells, fmt.Sprintf("%.1f", m))
		} else {
			cells = append(cells, fmt.Sprintf("%.1f ms", m*1000))
		}
	}
	cells = append(cells, fmt.Sprint(refused))
	for _, name := range []string{"w", "q"} {
		cell := "-"
		if o.Control != nil {
			cell = fmt.Sprintf("%.1f", result.Quantile(controls[name], 0.5))
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(cells, " | ") + " |\n", refused, nil
}

// counts lists statuses and how often they came.
func counts(statuses map[int]int) string {
	var list []string
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		name := fmt.Sprint(status)
		if status == 0 {
			name = "none"
		}
		list = append(list, fmt.Sprintf("%s: %d", name, statuses[status]))
	}
	return strings.Join(list, ", ")
}
