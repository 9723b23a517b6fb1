package pressure

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// processors is what Spare has found; 0: it was not called.
var processors atomic.Int64

// Processors returns how many goroutines may compute at one time on this machine.
func Processors() int {
	if n := processors.Load(); n > 0 {
		return int(n)
	}
	return runtime.GOMAXPROCS(0)
}

// Spare gives Go more threads than the machine has processors, once: work that takes long keeps to
// [Processors] of them. While all threads of Go compute, nothing looks whether a connection has become
// readable, for up to 10 ms, and a short request waits for that several times. With a thread to spare, the
// kernel shares the processors, and lets a thread go first that has waited.
//
// With 1,000 clients of another tenant on two processors, one more thread halved the median and the p99 of
// queries. Writes at full speed take as much CPU as without it.
var Spare = sync.OnceFunc(func() {
	n := runtime.GOMAXPROCS(0)
	if more := spare(n, runtime.NumCPU(), cgroupLimit(os.DirFS("/"))); more > 0 {
		processors.Store(int64(n))
		runtime.GOMAXPROCS(n + more)
	}
})

// spare returns how many threads more there should be than Go has, on a machine with so many processors, of
// which the cgroup may use limit. Fewer threads than processors are such a limit, or that of whoever set
// GOMAXPROCS. The kernel stops all threads of a cgroup that have used its limit up, which more of them do
// sooner, so there are none more.
func spare(threads, machine int, limit float64) int {
	if threads < machine || limit < float64(machine) {
		return 0
	}
	return max(2, threads/4)
}
