package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shaledb/shale/bench/result"
)

// reportCmd is bench report.
type reportCmd struct {
	Page    string   `default:"docs/benchmarks.md" type:"existingfile" help:"Page with marked sections to fill. Sections of loads without results stay."`
	Images  string   `default:"docs/img" type:"path" help:"Folder for plots."`
	Results []string `arg:"" type:"existingfile" help:"Result files of bench run."`
}

// Help returns examples.
func (*reportCmd) Help() string {
	return `Fill the page with what the last run has measured:

    go run ./bench report "$(ls -t bench-results/*.jsonl | head -1)"`
}

// Run fills the page.
func (c *reportCmd) Run(out *streams) error {
	records, err := result.Load(c.Results...)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return errors.New("there are no results in these files")
	}
	text, err := os.ReadFile(c.Page)
	if err != nil {
		return err
	}
	images, err := filepath.Rel(filepath.Dir(c.Page), c.Images)
	if err != nil {
		return err
	}
	sections, plots := report(records, filepath.ToSlash(images))
	page := string(text)
	for _, s := range sections {
		if page, err = result.Fill(page, s.name, s.text); err != nil {
			return fmt.Errorf("%s: %w", c.Page, err)
		}
		fmt.Fprintf(out.stderr, "%s: section %s\n", c.Page, s.name)
	}
	if err := os.MkdirAll(c.Images, 0o755); err != nil {
		return err
	}
	for _, p := range plots {
		if err := os.WriteFile(filepath.Join(c.Images, p.name), []byte(p.text), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(c.Page, []byte(page), 0o644)
}

// named is a section of the page, or a file with a plot.
type named struct{ name, text string }

// report makes sections and plots of records. Links to plots go through the folder of images.
func report(records []result.Record, images string) (sections, plots []named) {
	var bars []*result.Group
	for _, l := range loads() {
		if l.name == queriesLoad {
			continue
		}
		groups := groupsOf(records, l.name)
		if len(groups) == 0 {
			continue
		}
		text := heading(groups) + result.Table(groups, l.columns)
		if ratios := result.Compare(groups, l.ratios); ratios != "" {
			text += "\nRatios of medians:\n\n- " + strings.ReplaceAll(strings.TrimSuffix(ratios, "\n"), "\n", "\n- ") + "\n"
		}
		if remarks := result.Remarks(groups); remarks != "" {
			text += "\n" + remarks
		}
		if l.more != nil {
			text += "\n" + l.more(records)
		}
		for _, curve := range l.curves {
			if p, ok := curvePlot(l, groups, curve); ok {
				plots = append(plots, p)
				text += fmt.Sprintf("\n![%s: %s](%s/%s)\n", l.name, curve, images, p.name)
			}
		}
		sections = append(sections, named{l.name, "\n" + text + "\n"})
		if slices.Contains(l.columns, "cpu-s/M-settled") && slices.Contains(l.columns, "samples/s") {
			bars = append(bars, groups...)
		}
	}
	if text := queryReport(records); text != "" {
		sections = append(sections, named{queriesLoad, "\n" + text + "\n"})
	}
	if len(bars) > 0 {
		text := "\n"
		for _, p := range writePlots(bars) {
			plots = append(plots, p)
			text += fmt.Sprintf("![%s](%s/%s)\n\n", strings.TrimSuffix(p.name, ".svg"), images, p.name)
		}
		sections = append(sections, named{"overview", text})
	}
	return sections, plots
}

// groupsOf returns the groups of a load: Shale first, then the others in order of appearance.
func groupsOf(records []result.Record, load string) (groups []*result.Group) {
	for _, g := range result.Groups(records) {
		if g.Load == load {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b *result.Group) int { return cmp.Compare(rank(a.System), rank(b.System)) })
	return groups
}

func rank(name string) int {
	return slices.Index([]string{"loki", "victorialogs", "prometheus", "victoriametrics", baseTree, thisTree}, name) * -1
}

// heading returns the date, the machine and the versions.
func heading(groups []*result.Group) string {
	first := groups[0].Records[0]
	var versions []string
	for _, g := range groups {
		versions = append(versions, g.System+" is "+g.Version)
	}
	duration := ""
	if first.Seconds > 0 {
		duration = fmt.Sprintf("; loads without an end of their own ran for %g s", first.Seconds)
	}
	return fmt.Sprintf("Measured %s on %s%s. Systems: %s. Cells are medians, with the range of the runs in parentheses.\n\n",
		first.Began.Format("2006-01-02"), first.Machine, duration, strings.Join(versions, ", "))
}

// queryReport writes a table of the queries: a line for each query and source, and columns for each system.
func queryReport(records []result.Record) string {
	var all []*result.Group
	for _, g := range result.Groups(records) {
		if strings.HasPrefix(g.Load, "query/") {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(heading(all[:1]))
	text.WriteString("| query | system | from | elements of the result | first | p50 | p99 | CPU-s | RSS | bucket requests | time of one |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, q := range queryList() {
		for _, source := range []string{fromBuffers, fromParts, fromBucket} {
			for _, g := range groupsOf(records, queryLoad(q.name, source)) {
				fmt.Fprintf(&text, "| %s | %s | %s |", q.name, g.System, source)
				for _, column := range []string{"result-series", "first-s", "p50-s", "p99-s", "cpu-s", "rss-B", "bucket-requests", "bucket-request-s"} {
					fmt.Fprintf(&text, " %s |", result.Cell(column, g.Stat(column)))
				}
				text.WriteString("\n")
			}
		}
	}
	if remarks := result.Remarks(all); remarks != "" {
		text.WriteString("\n" + remarks)
	}
	return text.String()
}

// summary prints the tables of a file for the terminal.
func summary(w io.Writer, chosen []*load, file string) error {
	records, err := result.Load(file)
	if err != nil {
		return err
	}
	var sb strings.Builder
	for _, l := range chosen {
		if groups := groupsOf(records, l.name); len(groups) > 0 && l.name != queriesLoad {
			fmt.Fprintf(&sb, "\n%s\n\n%s%s%s", l.name, result.Table(groups, l.columns), result.Compare(groups, l.ratios), result.Remarks(groups))
			if l.more != nil {
				sb.WriteString("\n" + l.more(records))
			}
		}
	}
	if text := queryReport(records); text != "" {
		fmt.Fprintf(&sb, "\n%s\n\n%s", queriesLoad, text)
	}
	_, err = io.WriteString(w, sb.String())
	return err
}
