package result

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/shaledb/shale/bench/proc"
)

// Record is one run of a load against a system.
type Record struct {
	Load    string       `json:"load"`
	System  string       `json:"system"`
	Version string       `json:"version"` // as the system says
	Run     int          `json:"run"`     // from 0
	Began   time.Time    `json:"began"`
	Machine proc.Machine `json:"machine"`
	// Seconds is the planned duration of the load, or 0 if it ends by itself.
	Seconds float64 `json:"seconds,omitempty"`
	// Scale is the share of the series that the load used, or 0 for all.
	Scale float64 `json:"scale,omitempty"`
	// Values are the figures, by the names that [Units] knows.
	Values map[string]float64 `json:"values"`
	// Curves are figures over the time of the run, in seconds since its beginning.
	Curves map[string][]proc.Point `json:"curves,omitempty"`
	// Marks are moments of the run, in the same seconds.
	Marks map[string]float64 `json:"marks,omitempty"`
	// Notes are unusual facts about the run. Error is the reason for missing values.
	Notes []string `json:"notes,omitempty"`
	Error string   `json:"error,omitempty"`
	// Report is the output of the load generator.
	Report json.RawMessage `json:"report,omitempty"`
}

// Set sets a figure. A name without a unit is a bug of the caller.
func (r *Record) Set(name string, v float64) {
	if _, ok := unitOf(name); !ok {
		panic("BUG: no unit for the figure " + name)
	}
	if r.Values == nil {
		r.Values = map[string]float64{}
	}
	r.Values[name] = v
}

// Note adds a note.
func (r *Record) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Append adds records to a file, which it creates if necessary, so that an aborted run keeps its records.
func Append(name string, records ...Record) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, r := range records {
		line, err := json.Marshal(r)
		if err == nil {
			_, err = f.Write(append(line, '\n'))
		}
		if err != nil {
			_ = f.Close()
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return f.Close()
}

// Load reads the records of files, in their order.
func Load(names ...string) ([]Record, error) {
	var all []Record
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		records, err := read(f)
		_ = f.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, records...)
	}
	return all, nil
}

func read(r io.Reader) (all []Record, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, r)
	}
	return all, lines.Err()
}
