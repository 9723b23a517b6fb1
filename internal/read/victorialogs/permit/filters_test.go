package permit

import (
	"errors"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func TestFilters(t *testing.T) {
	for _, text := range []string{"a", "a=", "a= ", "=x", "a=x;a=y", "a=x;", "/=x"} {
		if err := new(Filters).UnmarshalText([]byte(text)); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var f Filters
	if err := f.UnmarshalText([]byte("b='x;\\';y';a=`\\`")); err != nil || f.String() != "a=`\\`;b='x;\\';y'" {
		t.Errorf("%s, %v", f, err)
	}
}
