package linetest

// Case is one line that a query is run on.
type Case struct {
	Query    string   `json:"query"`
	Stream   []string `json:"stream"` // name, value, name, value
	Metadata []string `json:"metadata,omitempty"`
	At       int64    `json:"at"`
	Line     string   `json:"line"`
}

// Outcome is what became of it.
type Outcome struct {
	// Error says that the query cannot be run, in the words of whoever was asked. All else is empty then.
	Error string `json:"error,omitempty"`
	Keep  bool   `json:"keep"`
	Line  string `json:"line,omitempty"`
	// Labels by where they come from, as name, value.
	Stream   []string `json:"stream,omitempty"`
	Metadata []string `json:"metadata,omitempty"`
	Parsed   []string `json:"parsed,omitempty"`
}

// Record is a case with its outcome, and, where somebody else says otherwise, why.
type Record struct {
	Case
	Out Outcome `json:"out"`
	Why string  `json:"why,omitempty"`
}

// streams are the labels and metadata that each query is tried with.
func streams() []Case {
	return []Case{
		{Stream: []string{"app", "web", "env", "prod"}, At: 1700000000123456789},
		{Stream: []string{"app", "web", "level", "base"}, Metadata: []string{"trace_id", "abc123", "user", "meta"}, At: 1700000001000000000},
		{Stream: []string{"a", "x", "app", "web", "status", "9"}, Metadata: []string{"app", "other", "level", "warn", "status_extracted", "m"}, At: 1600000000000000001},
	}
}

// Written returns the cases that are written down: each query with each line and each stream.
func Written() []Case {
	var all []Case
	lines := Lines()
	for _, q := range Queries() {
		for _, s := range streams() {
			for _, l := range lines {
				c := s
				c.Query, c.Line = "{app=\"web\"} "+q, l
				all = append(all, c)
			}
		}
	}
	return all
}
