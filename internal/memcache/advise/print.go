package advise

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/shaledb/shale/internal/terminal"
)

// mib writes bytes.
func mib(n int64) string {
	switch f := float64(n); {
	case f >= 10<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case f >= 100<<10 || f <= -100<<10:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	}
	return humanize.Comma(n) + " B"
}

// Print writes a report for people.
func (r *Report) Print(w io.Writer) error {
	for i, s := range r.Servers {
		if err := printServer(w, s, r.Wastes[i]); err != nil {
			return err
		}
	}
	how := "counted"
	if !r.Exact {
		how = "estimated from their classes"
	}
	if _, err := fmt.Fprintf(w, "%s items of %s bytes on average; their sizes are %s.\n\n", humanize.Comma(int64(r.Count)), humanize.Comma(int64(r.Mean)), how); err != nil {
		return err
	}
	rows := [][]string{{"layout", "these items take", "more items", "saves", "$ a month"}}
	for i, o := range r.Options {
		name := o.Name
		switch {
		case i == r.Advised && i > 0:
			name = "* " + name
		case o.Refused != "":
			name = "! " + name
		}
		rows = append(rows, []string{name + ": " + short(o.Args), mib(o.Bytes), fmt.Sprintf("%+.1f %%", 100*o.More), mib(o.Saved), fmt.Sprintf("%.2f", o.Money)})
	}
	if err := terminal.Table(w, rows); err != nil {
		return err
	}
	var text strings.Builder
	for _, o := range r.Options {
		if o.Refused != "" {
			fmt.Fprintf(&text, "\n! %s (%s): refused. %s.\n", o.Name, short(o.Args), o.Refused)
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&text, "\n%s: %s.\n", f.Topic, f.Text)
		if f.Args != nil {
			fmt.Fprintf(&text, "    %s\n", strings.Join(f.Args, " "))
		}
	}
	if r.Advised == 0 {
		fmt.Fprintf(&text, "\nKeep the slab classes: no other layout saves %.0f %% of the memory.\n", 100*worthwhile)
	} else {
		fmt.Fprintf(&text, "\nAdvised (*), with an empty cache after the restart:\n    %s\n", strings.Join(r.CommandLine, " "))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// short writes arguments without the middle of a long list.
func short(args []string) string {
	s := strings.Join(args, " ")
	if len(s) > 60 {
		return s[:40] + "..." + s[len(s)-14:]
	}
	if s == "" {
		return "(defaults)"
	}
	return s
}

func printServer(w io.Writer, s *Server, waste Waste) error {
	if len(s.Classes) == 0 {
		return nil // a histogram says nothing about memory
	}
	title := s.Addr
	if s.Version != "" {
		title += ", memcached " + s.Version
	}
	if _, err := fmt.Fprintf(w, "%s: %s\n\n", terminal.EscapeLines(title), mib(s.Memory)); err != nil {
		return err
	}
	var rows [][]string
	for _, part := range []struct {
		name  string
		bytes int64
	}{
		{"items", waste.Items}, {"chunks beyond their items", waste.InChunks}, {"ends of pages", waste.PageEnds}, {"free in last pages", waste.LastPages},
		{"pages that a class holds without need", waste.Held}, {"not assigned yet", waste.Unassigned},
	} {
		rows = append(rows, []string{part.name, mib(part.bytes), fmt.Sprintf("%.1f %%", 100*float64(part.bytes)/float64(max(1, s.Memory)))})
	}
	if err := terminal.Table(w, rows); err != nil {
		return err
	}
	rows = [][]string{{"class", "chunk", "items", "pages", "beyond items", "page ends", "free", "evicted", "unread"}}
	for _, c := range worst(waste, 8) {
		unread := "-"
		if c.Evicted > 0 && s.Stats != nil {
			unread = fmt.Sprintf("%.0f %%", 100*float64(c.Unfetched)/float64(c.Evicted))
		}
		rows = append(rows, []string{fmt.Sprint(c.ID), humanize.Comma(int64(c.ChunkSize)), humanize.Comma(c.Items), humanize.Comma(c.Pages), mib(c.InChunks), mib(c.PageEnds), mib(c.FreeBytes), humanize.Comma(c.Evicted), unread})
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	if err := terminal.Table(w, rows); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
