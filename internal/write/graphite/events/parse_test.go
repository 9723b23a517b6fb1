package events

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/event"
	"github.com/shaledb/shale/internal/model"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		body string
		want event.Event
	}{
		{`{"what":"a","tags":["x","y z"],"when":5,"data":"d"}`, event.Event{Time: 5e9, What: "a", Tags: []string{"x", "y", "z"}, Data: "d"}},
		{`{"what":"a","tags":"  x   y "}`, event.Event{Time: 7, What: "a", Tags: []string{"x", "y"}}},
		{`{"what":5,"tags":null,"data":{"b": 1}}`, event.Event{Time: 7, What: "5", Data: `{"b": 1}`}},
		{`{"what":"","when":1.25}`, event.Event{Time: 1.25e9}},
		{`{"what":"","when":1.999999999}`, event.Event{Time: 2e9}},
		{`{"what":"","when":1e9}`, event.Event{Time: 1e18}},
	} {
		if got, err := Parse([]byte(c.body), 7); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v %v, want %+v", c.body, got, err, c.want)
		}
	}
	for body, want := range map[string]string{
		"": "JSON object", "null": "JSON object", "[1]": "JSON object", "{}": `"what"`, `{"what":null}`: `"what"`,
		`{"what":"a","tags":5}`: "array or space-separated", `{"what":"a","tags":[5]}`: "array or space-separated",
		`{"what":"a","when":null}`: "Unix seconds", `{"what":"a","when":"5"}`: "Unix seconds", `{"what":"a","when":-1}`: "Unix seconds",
		`{"what":"a","when":1700000000000}`: "not 1700000000000", `{"what":"a","when":1e300}`: "Unix seconds",
	} {
		if _, err := Parse([]byte(body), 7); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// FuzzParse: an event that is accepted is the same when its line is read.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"what":"deploy 7","tags":["a","b"],"when":1700000000.5,"data":"by anna"}`))
	f.Add([]byte(`{"what":"\ud800","tags":"a \u2028b","data":null}`))
	f.Add([]byte(`{"what":5,"tags":["<>&"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := Parse(body, 5)
		if err != nil {
			return
		}
		if e.Time < 0 || e.Time/1e9 >= event.Seconds {
			t.Fatalf("%q: time %d", body, e.Time)
		}
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		got, ok := event.Read(e.Time, line, []byte("0"))
		if len(e.Tags) == 0 {
			e.Tags = []string{}
		}
		if !ok || !reflect.DeepEqual(got, e) {
			t.Fatalf("%q: %+v, want %+v", body, got, e)
		}
		for _, tag := range e.Tags {
			if !strings.Contains(string(line), event.Needle(tag)) {
				t.Fatalf("%s does not contain %s", line, event.Needle(tag))
			}
		}
	})
}
