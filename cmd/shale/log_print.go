package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/client"
)

// The formats of lines, besides table and json.
const (
	formatRaw   = "raw"
	formatJSONL = "jsonl"
)

// writeLine writes a line in a format.
func writeLine(w *bufio.Writer, l *client.Line, format string) error {
	switch format {
	case formatRaw:
		_, _ = w.Write(l.Text)
		return w.WriteByte('\n')
	case formatJSONL:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Time   string            `json:"time"`
			Labels map[string]string `json:"labels"`
			Line   string            `json:"line"`
		}{lineTime(l), l.Labels, string(l.Text)})
	case "table":
		_, err := fmt.Fprintf(w, "%s %s %s\n", lineTime(l), l.Stream, l.Text)
		return err
	}
	return nil
}

func lineTime(l *client.Line) string {
	return time.Unix(0, l.At).UTC().Format("2006-01-02T15:04:05.000000000Z")
}
