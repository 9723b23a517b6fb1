package tsdbimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/move/remote"
)

// State is what a server has acknowledged of an import, in a file. Several goroutines may use it.
type State struct {
	Header
	Blocks map[string]*Progress `json:"blocks"` // by folder

	mu    sync.Mutex
	path  string
	saved time.Time
}

// Header says which import a state file is of.
type Header struct {
	Version int    `json:"version"`
	Source  string `json:"source"`
	Address string `json:"address"`
	Tenant  string `json:"tenant,omitempty"`
	// From and To bound the times that are imported, in Unix milliseconds.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Dropped are names of external labels that are not added.
	Dropped string `json:"dropped,omitempty"`
}

// Progress is what is acknowledged of a block.
type Progress struct {
	Sent     bool `json:"sent,omitempty"`
	Verified bool `json:"verified,omitempty"`
	// Until is the end of the days that are acknowledged in Unix milliseconds, if Begun. Of the day after that,
	// the series before Series are.
	Begun  bool   `json:"begun,omitempty"`
	Until  int64  `json:"until,omitempty"`
	Series uint64 `json:"series,omitempty"`
	// Samples counts what is acknowledged.
	Samples int64 `json:"samples"`
}

const (
	stateVersion = 1
	// saveEvery bounds what is sent once more after a crash.
	saveEvery = time.Second
)

// OpenState reads a state file, or begins one. The file of another import is an error of class invalid.
func OpenState(path string, h Header) (*State, error) {
	h.Version = stateVersion
	s := &State{Header: h, Blocks: map[string]*Progress{}, path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, s.Save()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: state file: %w", model.ErrInvalid, err)
	}
	var old State
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, fmt.Errorf("state file %s: %w: %v", path, model.ErrCorrupt, err)
	}
	if old.Header != h {
		return nil, fmt.Errorf("%w: state file %s is of another import: of %s to %s, tenant %q, with its own --start, --end and --drop-label; remove it, or name another file with --state",
			model.ErrInvalid, path, old.Source, old.Address, old.Tenant)
	}
	for folder, p := range old.Blocks {
		if p == nil || p.Samples < 0 {
			return nil, fmt.Errorf("state file %s: %w: block %s", path, model.ErrCorrupt, folder)
		}
		s.Blocks[folder] = p
	}
	return s, nil
}

// progress returns the progress of a block.
func (s *State) progress(b *Block) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.Blocks[b.Folder]; p != nil {
		return *p
	}
	return Progress{}
}

// update changes the progress of a block, and saves the state now and then.
func (s *State) update(b *Block, change func(*Progress)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Blocks[b.Folder] == nil {
		s.Blocks[b.Folder] = &Progress{}
	}
	change(s.Blocks[b.Folder])
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
