package bucket

// SizeClasses is the number of classes of [SizeClass].
const SizeClasses = 4

// SizeClass returns the class of a request of n bytes: below 64 KiB, 512 KiB, 4 MiB, or more. Latencies of
// one class can be compared.
func SizeClass(n int64) int {
	switch {
	case n < 64<<10:
		return 0
	case n < 512<<10:
		return 1
	case n < 4<<20:
		return 2
	}
	return 3
}
