package admit

const (
	// MostUses is the number of queries that are counted for a value on the disk since it was written.
	MostUses = 3
	// MostReinserted is the share of a segment, in percent, that is written once more when it is reclaimed.
	// The rest of the segment is free after that.
	MostReinserted = 40
)

// Reinsert writes those values of a segment once more that queries have used since they were written: the
// most used first, and within one number of uses the oldest. The segment has n values, the oldest first.
// Value returns how many queries have used one, and its bytes; 0 uses leave it out. Write reports whether it
// has written the value, whose uses are 0 after that.
func Reinsert(segmentBytes int64, n int, value func(i int) (uses int, bytes int64), write func(i int) (bool, error)) error {
	left := segmentBytes * MostReinserted / 100
	for want := MostUses; want > 0; want-- {
		for i := range n {
			uses, bytes := value(i)
			if uses != want || bytes > left {
				continue
			}
			written, err := write(i)
			if err != nil {
				return err
			}
			if written {
				left -= bytes
			}
		}
	}
	return nil
}
