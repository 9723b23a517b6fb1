package known

import "golang.org/x/sys/unix"

// hugePage is the size from which an arena asks for huge pages, which make random access to gigabytes cheaper
// (see BenchmarkKnownHit).
const hugePage = 2 << 20

// newArena returns n zeroed bytes outside the Go heap, so that the garbage collector neither scans them nor
// lets its target grow by them.
func newArena(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil && n >= hugePage {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // only advice: without it the arena is slower
	}
	return b, err
}

func freeArena(b []byte) {
	if b != nil {
		_ = unix.Munmap(b)
	}
}
