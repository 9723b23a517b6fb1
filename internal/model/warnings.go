package model

import (
	"slices"
	"sync"
)

// maxWarnings bounds the warnings of one query.
const maxWarnings = 10

// Warnings are what the user of a result must know: that it may lack rows, for example. They may be used by
// several goroutines. The zero value has none.
type Warnings struct {
	mu    sync.Mutex
	texts []string
}

// Add adds a text of one line, once. Beyond 10 texts it only says that there are more.
func (w *Warnings) Add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.texts) == maxWarnings {
		text = "there are more warnings"
	}
	if len(w.texts) <= maxWarnings && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// All returns the texts in the order in which they were added.
func (w *Warnings) All() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
