package conns

import (
	"net"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// TestLimit: a connection beyond the limit waits for one to be closed.
func TestLimit(t *testing.T) {
	looked := make(chan struct{}, 100)
	l := limit(listen(t), 1, func() { looked <- struct{}{} })
	accepted := make(chan net.Conn)
	ended := make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		defer c.Close()
	}
	first := <-accepted
	for range 2 { // again and again
		select {
		case <-accepted:
			t.Error("two connections with a limit of one")
		case <-looked:
		}
	}
	must(t, first.Close())
	_ = first.Close() // frees no further slot
	second := <-accepted
	<-looked
	must(t, l.Close())
	if err := <-ended; err == nil {
		t.Error("Accept goes on after Close")
	}
	_ = l.Close()
	must(t, second.Close())
}
