package line_test

import (
	"reflect"
	"testing"

	"github.com/shaledb/shale/internal/read/logql/line/linetest"
)

// TestGolden compares with what Loki said. test/logql-oracle/line has written it, and compares many more
// cases.
func TestGolden(t *testing.T) {
	records, err := linetest.Read("testdata/loki.golden")
	if err != nil {
		t.Fatal(err)
	}
	if len(records) < 1000 {
		t.Fatalf("%d records", len(records))
	}
	differences := 0
	for _, r := range records {
		us := linetest.Run(r.Case)
		if reflect.DeepEqual(us, r.Out) {
			if r.Why != "" {
				t.Errorf("%s\nline %q: as Loki, but was said to differ: %s", r.Query, r.Line, r.Why)
			}
			continue
		}
		if differences++; r.Why == "" {
			t.Errorf("%s\nline %q\nLoki %+v\nwe   %+v", r.Query, r.Line, r.Out, us)
		}
	}
	t.Logf("%d records, %d meant to differ", len(records), differences)
}
