package event

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	want := Event{ID: ID(1700000000, 7), Time: 1700000000e9 + 5, What: "größe \"x\" <1>", Tags: []string{`a"b`, "<c>", "größe", `d\`}, Data: "one\ntwo"}
	line, err := want.Line()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := Read(want.Time, line, []byte(strconv.FormatInt(want.ID, 10)))
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, tag := range want.Tags {
		if !strings.Contains(string(line), Needle(tag)) {
			t.Errorf("%s does not contain %s", line, Needle(tag))
		}
	}
	if SecondOf(want.ID) != 1700000000 {
		t.Errorf("the second of the id is %d", SecondOf(want.ID))
	}
	if last := ID(Seconds-1, 1<<32-1); last != 1<<53-1 || SecondOf(last) != Seconds-1 {
		t.Errorf("the last id is %d", last)
	}
}

func TestOtherLines(t *testing.T) {
	for _, c := range [][2]string{{"{}", ""}, {"{}", "x"}, {"text", "1"}, {`{"what":5}`, "1"}} {
		if e, ok := Read(0, []byte(c[0]), []byte(c[1])); ok {
			t.Errorf("%q is the event %+v", c, e)
		}
	}
}

func TestHas(t *testing.T) {
	e := Event{Tags: []string{"a", "b"}}
	for _, c := range []struct {
		tags       string
		all, union bool
	}{{"a", true, true}, {"a b", true, true}, {"a c", false, true}, {"c", false, false}, {"A", false, false}, {"", true, false}} {
		tags := strings.Fields(c.tags)
		if e.Has(tags, false) != c.all || e.Has(tags, true) != c.union {
			t.Errorf("%q: %v %v", c.tags, e.Has(tags, false), e.Has(tags, true))
		}
	}
}
