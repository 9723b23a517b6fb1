package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/event"
	"github.com/shaledb/shale/internal/model"
)

// Parse reads an event without its id. Without a time, it has that of now, in Unix nanoseconds. Errors are of
// class invalid.
func Parse(body []byte, now int64) (event.Event, error) {
	e := event.Event{Time: now}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return e, fmt.Errorf("%w: expected an event as a JSON object, such as {\"what\": \"deploy\", \"tags\": [\"web\"]}", model.ErrInvalid)
	}
	for name, v := range members {
		// A null is as good as nothing, except where graphite-web needs a value.
		null := bytes.Equal(v, []byte("null"))
		var err error
		switch {
		case name == "what" && !null:
			e.What = plain(v)
		case name == "data" && !null:
			e.Data = plain(v)
		case name == "tags" && !null:
			e.Tags, err = tags(v)
		case name == "when":
			e.Time, err = when(v)
		}
		if err != nil {
			return e, err
		}
	}
	if what := members["what"]; what == nil || bytes.Equal(what, []byte("null")) {
		return e, fmt.Errorf("%w: the event has no \"what\"", model.ErrInvalid)
	}
	return e, nil
}

// plain returns a string as it is, and other values as JSON.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// tags reads a list of tags, or a text with blanks between tags. A tag with a blank in it is several.
func tags(v json.RawMessage) ([]string, error) {
	var list []string
	if json.Unmarshal(v, &list) == nil {
		return strings.Fields(strings.Join(list, " ")), nil
	}
	var s string
	if json.Unmarshal(v, &s) == nil {
		return strings.Fields(s), nil
	}
	return nil, fmt.Errorf("%w: \"tags\" must be an array or space-separated string", model.ErrInvalid)
}

// when reads Unix seconds, with microseconds at most.
func when(v json.RawMessage) (int64, error) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= 0 && n < event.Seconds {
		return n * 1e9, nil
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(f >= 0 && f < event.Seconds-1) {
		return 0, fmt.Errorf("%w: \"when\" must be a number of Unix seconds from 0 to %d, not %.100s", model.ErrInvalid, int64(event.Seconds-1), v)
	}
	whole, part := math.Modf(f)
	return int64(whole)*1e9 + int64(math.RoundToEven(part*1e6))*1e3, nil
}
