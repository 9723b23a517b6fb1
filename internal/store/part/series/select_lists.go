package series

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// maxKeptList bounds a cached list, so that no pattern evicts many others.
const maxKeptList = 64 << 10

// errNotKept says that a list is too long to be kept.
var errNotKept = errors.New("list not kept")

// scanned is scan with its result cached for later queries. Operator and value identify a matcher; one
// without a value cannot be cached.
func (s *selector) scanned(w *postingWalk, accept bool) (rankRuns, error) {
	l, ok := w.pages.Reader.Pages().(file.Lists)
	if !ok || s.Value == "" || s.Op != model.MatchRegexp && s.Op != model.MatchNotRegexp {
		return s.scan(w, accept)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %t %d %q %q", w.tenant, accept, s.Op, s.Name, s.Value))
	key := file.ListKey{Query: [16]byte(sum[:16])}
	var runs rankRuns
	var scanErr error
	found := false
	list, err := l.List(w.pages.Ctx, key, func(context.Context) ([]byte, error) {
		found = true
		if runs, scanErr = s.scan(w, accept); scanErr != nil {
			return nil, scanErr
		}
		if 8*len(runs) > maxKeptList {
			return nil, errNotKept
		}
		return runs.encode(), nil
	})
	switch {
	case found:
		return runs, scanErr
	case errors.Is(err, errNotKept):
		return s.scan(w, accept)
	case err != nil:
		return nil, err
	}
	return decodeRankRuns(list), nil
}

func (s rankRuns) encode() []byte {
	b := make([]byte, 0, 8*len(s))
	for _, r := range s {
		b = binary.LittleEndian.AppendUint32(b, r.from)
		b = binary.LittleEndian.AppendUint32(b, r.to)
	}
	return b
}

func decodeRankRuns(b []byte) rankRuns {
	s := make(rankRuns, len(b)/8)
	for i := range s {
		s[i] = rankRun{binary.LittleEndian.Uint32(b[8*i:]), binary.LittleEndian.Uint32(b[8*i+4:])}
	}
	return s
}
