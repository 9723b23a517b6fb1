package model

import "testing"

// TestBillLeast: pages near each other come with one request, and a page that two selectors want counts once.
func TestBillLeast(t *testing.T) {
	b := new(Bill)
	add := func(block string, certain ...StoredRange) {
		b.Add(&BillItem{Block: block, Possible: certain, Certain: certain, Gap: 10, Span: 100, Pages: int64(len(certain)), Most: Reads{Requests: int64(len(certain))}})
	}
	add("x", StoredRange{0, 20}, StoredRange{30, 20}, StoredRange{61, 5}) // the last gap is 11
	add("x", StoredRange{30, 20}, StoredRange{70, 40})                    // 49 bytes from 61 on
	add("y", StoredRange{0, 500}, StoredRange{500, 1})                    // a long page goes alone
	f := b.Figures()
	if f.Blocks != 2 || f.Pages != 7 || f.Most.Requests != 7 {
		t.Errorf("%+v", f)
	}
	if want := (Reads{Requests: 4, Bytes: 20 + 20 + 5 + 40 + 501}); f.Least != want {
		t.Errorf("%+v, want %+v", f.Least, want)
	}
	b.Add(&BillItem{Block: "z", Possible: []StoredRange{{0, 7}}, Overlap: []StoredRange{{0, 7}}})
	if got := b.Figures().Least; got.Bytes != f.Least.Bytes+7 {
		t.Errorf("%+v with a page that overlaps", got)
	}
	b.Blur()
	// A page that may be read joins two that are read.
	far := []StoredRange{{0, 5}, {40, 5}}
	far2 := []StoredRange{{0, 5}, {12, 20}, {40, 5}}
	joined := new(Bill)
	joined.Add(&BillItem{Block: "x", Possible: far2, Certain: far, Gap: 10, Span: 100})
	if f := joined.Figures(); f.Least != (Reads{1, 10}) || f.Likely != (Reads{1, 30}) {
		t.Errorf("%+v", f)
	}
	if got := b.Figures().Least; got != f.Least {
		t.Errorf("%+v, although times are blurred", got)
	}
}
