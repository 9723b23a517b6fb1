package event

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Selector selects the stream of events in LogQL. Labels returns its labels.
const Selector = `{` + label + `="` + value + `"}`

const (
	label = "service_name"
	value = "graphite_events"
)

// Labels returns the labels of the stream.
func Labels() model.Labels { return model.LabelsOf(label, value) }

// IDName is the name under which structured metadata has the id.
const IDName = "id"

// Event is something that happened.
type Event struct {
	ID   int64
	Time int64 // Unix nanoseconds
	What string
	Tags []string
	Data string
}

// Of an id, the upper bits are the second of the event, and the lower ones tell the events of a second apart.
// So an event is found by its id without an index. Ids are exact in JavaScript, whose numbers have 53 bits.
const idBits = 20

// Seconds bounds the times of events, in Unix seconds: they have 33 bits.
const Seconds = 1 << 33

// ID returns the id of an event of a second by a number that events of the same second do not share.
func ID(second int64, number uint32) int64 { return second<<idBits | int64(number&(1<<idBits-1)) }

// SecondOf returns the second of the event with an id.
func SecondOf(id int64) int64 { return id >> idBits }

// text is a line.
type text struct {
	What string `json:"what"`
	Tags string `json:"tags"`
	Data string `json:"data"`
}

// Line returns the line of an event.
func (e *Event) Line() ([]byte, error) {
	return json.Marshal(text{What: e.What, Tags: strings.Join(e.Tags, " "), Data: e.Data})
}

// Read returns the event of a line, and whether it is one.
func Read(at int64, line, id []byte) (Event, bool) {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return Event{}, false
	}
	var t text
	if json.Unmarshal(line, &t) != nil {
		return Event{}, false
	}
	return Event{ID: n, Time: at, What: t.What, Tags: strings.Fields(t.Tags), Data: t.Data}, true
}

// Needle returns what each line of an event with the tag contains.
func Needle(tag string) string {
	quoted, _ := json.Marshal(tag) // a string cannot fail
	return strings.Trim(string(quoted), `"`)
}

// Has reports whether the event has all of the tags; with union, whether it has any.
func (e *Event) Has(tags []string, union bool) bool {
	has := func(tag string) bool { return slices.Contains(e.Tags, tag) }
	if union {
		return slices.ContainsFunc(tags, has)
	}
	return !slices.ContainsFunc(tags, func(tag string) bool { return !has(tag) })
}
