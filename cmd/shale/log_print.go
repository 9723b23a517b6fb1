package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/terminal"
)

// The formats of lines, besides table and json.
const (
	formatRaw   = "raw"
	formatJSONL = "jsonl"
)

// linePrinter prints lines in a format.
type linePrinter struct {
	out    *bufio.Writer
	format string

	// The table shows the labels that all lines so far have in a row of their own, once more when they become
	// fewer, and on a line its other labels.
	common  terminal.Common
	headed  bool
	streams map[string]string // the other labels of each stream of a page
	buffer  []byte

	lines int   // that were printed
	last  int64 // the time of the last one
}

// count counts lines that are printed.
func (p *linePrinter) count(lines []client.Line) {
	p.lines += len(lines)
	if len(lines) > 0 {
		p.last = lines[len(lines)-1].At
	}
}

// print prints the lines of a page.
func (p *linePrinter) print(lines []client.Line) error {
	if p.format == formatTable && len(lines) > 0 {
		if err := p.head(lines); err != nil {
			return err
		}
	}
	for i := range lines {
		if err := p.line(&lines[i]); err != nil {
			return err
		}
	}
	p.count(lines)
	return nil
}

// head prints the labels that all lines have, if this has not been said.
func (p *linePrinter) head(lines []client.Line) error {
	p.streams = make(map[string]string)
	fewer := false
	for i := range lines {
		if _, seen := p.streams[lines[i].Stream]; !seen {
			p.streams[lines[i].Stream] = ""
			fewer = p.common.Narrow(lines[i].Labels) || fewer
		}
	}
	for i := range lines {
		if p.streams[lines[i].Stream] == "" {
			p.streams[lines[i].Stream] = terminal.Selector(lines[i].Labels, p.common.Labels)
		}
	}
	if p.headed && !fewer || !p.headed && len(p.common.Labels) == 0 {
		p.headed = true
		return nil
	}
	p.headed = true
	_, err := p.out.WriteString(commonLabels(&p.common) + "\n")
	return err
}

// commonLabels is the row above a table with the labels that all of its rows have.
func commonLabels(c *terminal.Common) string {
	return "common labels: " + terminal.Selector(c.Labels, nil)
}

func (p *linePrinter) line(l *client.Line) error {
	p.buffer = p.buffer[:0]
	switch p.format {
	case formatRaw:
		p.buffer = append(p.buffer, l.Text...)
	case formatJSONL:
		var document bytes.Buffer
		e := json.NewEncoder(&document)
		e.SetEscapeHTML(false)
		err := e.Encode(struct {
			Time   string            `json:"time"`
			Labels map[string]string `json:"labels"`
			Line   string            `json:"line"`
		}{lineTime(l), l.Labels, string(l.Text)})
		if err != nil {
			return err
		}
		p.buffer = terminal.EscapeJSON(p.buffer, bytes.TrimSuffix(document.Bytes(), []byte("\n")))
	default:
		p.buffer = append(append(p.buffer, lineTime(l)...), ' ')
		p.buffer = append(append(p.buffer, p.streams[l.Stream]...), ' ')
		p.buffer = terminal.Escape(p.buffer, l.Text)
	}
	_, err := p.out.Write(append(p.buffer, '\n'))
	return err
}

func lineTime(l *client.Line) string {
	return time.Unix(0, l.At).UTC().Format("2006-01-02T15:04:05.000000000Z")
}
