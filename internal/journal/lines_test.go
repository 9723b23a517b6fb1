package journal

import (
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestLinesTakeWhatIsCharged: neither the record of lines that cannot be compressed nor what joins them takes
// more than the hints say, also when rows in the middle were left out.
func TestLinesTakeWhatIsCharged(t *testing.T) {
	noise := rand.NewChaCha8([32]byte{1})
	for _, apart := range []bool{false, true} {
		b := &model.Batch{Tenant: "t", Signal: model.Logs}
		line := make([]byte, 10<<10)
		for i := range 30 {
			_, _ = noise.Read(line)
			b.Text.AppendBlob(int64(i), model.KindText, model.AppendLine(nil, &model.Line{Text: line}), 0)
		}
		b.EndSeries(model.Key{Hi: 1, Lo: 1})
		joined := 0
		if apart {
			b.KeepRows(func(_ model.Family, _, row int) bool { return row != 15 })
			joined = 29 * len(model.AppendLine(nil, &model.Line{Text: line}))
		}
		if got := JoinHint(b); got != joined {
			t.Errorf("apart %t: %d bytes are charged for joining %d", apart, got, joined)
		}
		hint := SizeHint(b)
		if got := cap(EncodeBatch(make([]byte, 0, hint), b)); got != hint {
			t.Errorf("apart %t: a record that was charged %d bytes takes %d", apart, hint, got)
		}
	}
}
