package carbonlink

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// firstBytes is how much memory a request gets before any of it has come. It doubles from there.
const firstBytes = 4 << 10

// request reads a request of n bytes and answers it.
func (s *Server) request(nc *patient, r io.Reader, n int) error {
	transit, quota := s.o.Transit(), s.o.Quota()
	defer transit.Release()
	defer quota.Release()
	request, refusal, err := receive(r, n, transit)
	if err != nil {
		return err
	}
	nc.until = time.Now().Add(s.o.Timeout)
	if refusal != nil {
		return nc.send(s.failed(refusal))
	}
	answer := s.answer(request, quota)
	_ = transit.TakeBytes(-int64(n)) // the request is garbage from here on
	nc.until = time.Now().Add(s.o.Timeout)
	if transit.TakeBytes(int64(cap(answer))) == nil {
		quota.Release()
	} else {
		nc.until = time.Now().Add(s.o.Stall) // queries need the memory of the answer
	}
	return nc.send(answer)
}

// receive reads a request of n bytes. Without memory for it, it skips the request and returns the refusal.
func receive(r io.Reader, n int, transit *model.Quota) (request []byte, refusal, err error) {
	for len(request) < n {
		had := len(request)
		size := min(n, max(2*had, firstBytes))
		if refusal := transit.TakeBytes(int64(size - had)); refusal != nil {
			transit.Release()
			_, err := io.CopyN(io.Discard, r, int64(n-had))
			return nil, refusal, err
		}
		request = model.Sized(request, size)[:size]
		if _, err := io.ReadFull(r, request[had:]); err != nil {
			return nil, nil, err
		}
	}
	return request, nil, nil
}

// patient is a connection whose client may take its time, as long as some bytes pass. All of a request or of
// an answer must have passed at a certain time.
type patient struct {
	net.Conn
	stall time.Duration
	until time.Time
	// waits says that the first byte of a request may take until then.
	waits bool
}

// idle lets the next byte take so long.
func (p *patient) idle(most time.Duration) { p.until, p.waits = time.Now().Add(most), true }

// deadline returns until when the next bytes must pass.
func (p *patient) deadline() time.Time {
	if stalled := time.Now().Add(p.stall); !p.waits && stalled.Before(p.until) {
		return stalled
	}
	return p.until
}

// Read reads what has come.
func (p *patient) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(p.deadline()) // an error shows at the read
	n, err := p.Conn.Read(b)
	p.waits = p.waits && n == 0
	return n, err
}

// sendBytes is how much of an answer must pass for progress.
const sendBytes = 64 << 10

// send writes an answer, with its length.
func (p *patient) send(answer []byte) error {
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	for len(answer) > 0 {
		_ = p.SetWriteDeadline(p.deadline())
		n, err := p.Write(answer[:min(len(answer), sendBytes)])
		if err != nil {
			return err
		}
		answer = answer[n:]
	}
	return nil
}
