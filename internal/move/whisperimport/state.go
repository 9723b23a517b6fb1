package whisperimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/move/remote"
)

// Header says which import a state file is of.
type Header struct {
	Version int     `json:"version"`
	Source  string  `json:"source"`
	Address string  `json:"address"`
	Tenant  string  `json:"tenant,omitempty"`
	Dialect Dialect `json:"dialect"`
}

// Tally counts what became of files.
type Tally struct {
	// Files were imported, Compressed among them. Empty ones have no point that whisper would show.
	Files      int64 `json:"files"`
	Compressed int64 `json:"compressed"`
	Empty      int64 `json:"empty"`
	Bytes      int64 `json:"bytes"`
	// Points are those of the finest archives. Rollups are slots of coarser ones that were sent, too.
	Points  int64 `json:"points"`
	Rollups int64 `json:"rollups"`
	// Future and Stale are slots that whisper does not show: after the time of the import, or overwritten.
	Future int64 `json:"slots_in_the_future"`
	Stale  int64 `json:"slots_stale"`
	// OtherMethods counts archives that have a second method for the step of another one.
	OtherMethods int64 `json:"archives_of_other_methods"`
	// Skipped files were not imported. Of their reasons the first ones are listed.
	Skipped     int64     `json:"skipped"`
	SkippedList []Skipped `json:"skipped_files,omitempty"`
}

// Skipped is a file that was not imported.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// maxListed bounds the files that a report lists.
const maxListed = 1000

func (t *Tally) add(o *Tally) {
	t.Files += o.Files
	t.Compressed += o.Compressed
	t.Empty += o.Empty
	t.Bytes += o.Bytes
	t.Points += o.Points
	t.Rollups += o.Rollups
	t.Future += o.Future
	t.Stale += o.Stale
	t.OtherMethods += o.OtherMethods
	t.Skipped += o.Skipped
	t.SkippedList = append(t.SkippedList, o.SkippedList[:min(len(o.SkippedList), maxListed-len(t.SkippedList))]...)
}

// seen returns the number of files.
func (t *Tally) seen() int64 { return t.Files + t.Empty + t.Skipped }

// State is what a server has acknowledged, in a file. Several goroutines may use it.
type State struct {
	Header
	// Now is the time at which files are read, in Unix seconds, the same in all runs.
	Now int64 `json:"now"`
	// Until is the last file that is done, in the order of their paths; "": none.
	Until string `json:"until"`
	Sent  bool   `json:"sent"`
	Tally Tally  `json:"tally"`

	mu    sync.Mutex
	path  string
	saved time.Time
}

const (
	stateVersion = 1
	// saveEvery bounds what is sent once more after a crash.
	saveEvery = time.Second
)

// NewState returns a state without a file, at a time in Unix seconds. 0: now.
func NewState(h Header, now int64) *State {
	if now == 0 {
		now = time.Now().Unix()
	}
	h.Version = stateVersion
	return &State{Header: h, Now: now}
}

// OpenState reads a state file, or begins one at a time in Unix seconds. The file of another import is an
// error of class invalid. A time that differs from that of the file is, too, unless it is 0.
func OpenState(path string, h Header, now int64) (*State, error) {
	s := NewState(h, now)
	h, s.path = s.Header, path
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, s.save()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: state file: %w", model.ErrInvalid, err)
	}
	if err := json.Unmarshal(text, s); err != nil || s.Now <= 0 {
		return nil, fmt.Errorf("state file %s: %w: %v", path, model.ErrCorrupt, err)
	}
	if s.Header != h || now != 0 && s.Now != now {
		return nil, fmt.Errorf("%w: state file %s is of another import: of %s to %s, tenant %q, dialect %s, as of %s; remove it, or name another file with --state",
			model.ErrInvalid, path, s.Source, s.Address, s.Tenant, s.Dialect, time.Unix(s.Now, 0).UTC().Format(time.RFC3339))
	}
	return s, nil
}

// update changes the state, and saves it now and then.
func (s *State) update(change func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	if time.Since(s.saved) < saveEvery {
		return nil
	}
	return s.save()
}

// Save replaces the file. It survives a crash of the machine.
func (s *State) Save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.save()
}

func (s *State) save() error {
	text, err := json.Marshal(s)
	if err == nil {
		err = remote.ReplaceFile(s.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%w: state file: %w", model.ErrTransient, err)
	}
	s.saved = time.Now()
	return nil
}

// before reports whether a path comes before another one when folders are walked in order.
func before(a, b string) bool {
	return strings.ReplaceAll(a, "/", "\x00") < strings.ReplaceAll(b, "/", "\x00")
}
