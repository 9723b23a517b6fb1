package renders

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Refresh lets the first server draw all boards at an interval for a while, and writes a table of the times
// of single panels. It is meant for a server that takes points at the same time.
func Refresh(ctx context.Context, o Options, every, last time.Duration, out io.Writer) error {
	client := newClient(&o)
	defer client.CloseIdleConnections()
	all := boards()
	took, failed, late := make([][]time.Duration, len(all)), make([]int, len(all)), 0
	s := &o.Servers[0]
	before, err := s.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	rounds := int(last / every)
	for round := range rounds {
		due := begin.Add(time.Duration(round) * every)
		if time.Since(due) > every {
			late++
		}
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return ctx.Err()
		}
		for i := range all {
			d, err := draw(ctx, client, &o, s, &all[i], o.End.Add(-time.Duration(1+round%o.Rounds)*time.Minute))
			if err != nil {
				return err
			}
			took[i] = append(took[i], d.each...)
			failed[i] += d.failed
		}
		fmt.Fprintf(o.Log, "refresh %d of %d\n", round+1, rounds)
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| | panels drawn | p50 | p99 | worst | errors |\n|"+strings.Repeat("---|", 6))
	for i, times := range took {
		slices.Sort(times)
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %d |\n", all[i].name, len(times), ms(times[len(times)/2].Seconds()), ms(times[len(times)*99/100].Seconds()), ms(times[len(times)-1].Seconds()), failed[i])
	}
	fmt.Fprintf(out, "\n%s used %.1f CPU-s in %v, its writes included; %d of %d refreshes began more than %v late.\n", s.Name, after-before, time.Since(begin).Round(time.Second), late, rounds, every)
	return nil
}
