package meter

import (
	"fmt"
	"testing"
)

// TestTenants: the tenants with the most requests have label values, whenever they come, and their number is
// bounded.
func TestTenants(t *testing.T) {
	var dropped []string
	n := newTenants(func(tenant string) { dropped = append(dropped, tenant) })
	for i := range maxTenants {
		if got := n.label(fmt.Sprint("t", i)); got != fmt.Sprint("t", i) {
			t.Errorf("tenant %d is %q", i, got)
		}
	}
	for range 3 * maxOthers {
		for i := range 10 {
			n.label(fmt.Sprint("t", i))
		}
	}
	labels := map[string]int{}
	for i := range 3 * maxOthers {
		labels[n.label(fmt.Sprint("rare", i))]++
		labels[n.label("late")]++
	}
	if labels["late"] < 2*maxOthers || labels[otherTenants] < 3*maxOthers {
		t.Errorf("%v", labels)
	}
	if len(dropped) != 1 || dropped[0] < "t10" || len(n.named) != maxTenants || len(n.others) > maxOthers {
		t.Errorf("%v lost their names; %d and %d tenants are known", dropped, len(n.named), len(n.others))
	}
}
