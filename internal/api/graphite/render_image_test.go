package graphite_test

import (
	"bytes"
	"image/color"
	"image/png"
	"net/url"
	"strings"
	"testing"
)

// TestImages: an image has the size, the colours and the texts that were asked for.
func TestImages(t *testing.T) {
	h := example(t)
	query := "target=a.*&from=999&until=1050&now=2000&width=400&height=200&title=The+title&bgcolor=102030&colorList=red,%23010203&lineWidth=3"
	for _, format := range []string{"", "&format=png"} {
		a := request(h, query+format)
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		img, err := png.Decode(strings.NewReader(a.Body))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() != 400 || b.Dy() != 200 {
			t.Errorf("the image has %v", b)
		}
		found := map[color.RGBA]int{}
		for x := range 400 {
			for y := range 200 {
				found[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
			}
		}
		for _, c := range []color.RGBA{{0x10, 0x20, 0x30, 255}, {200, 0, 50, 255}, {1, 2, 3, 255}} {
			if found[c] < 50 {
				t.Errorf("%d pixels of %v", found[c], c)
			}
		}
	}
	svg := request(h, query+"&format=svg&tz=Europe/Berlin&vtitle=%3Cunit%3E").Body
	for _, text := range []string{`width="400" height="200"`, ">The title<", ">a.one<", ">a.two<", ">&lt;unit&gt;<", ">01:17:00<", `stroke="#010203"`, `fill="#102030"`, `stroke-width="3"`} {
		if !strings.Contains(svg, text) {
			t.Errorf("the image has no %s:\n%s", text, svg)
		}
	}
	if body := request(h, query+"&format=svg&hideLegend=true").Body; strings.Contains(body, "a.one") {
		t.Error("there is a legend")
	}
	if body := request(h, query+"&format=svg&jsonp=draw").Body; !strings.HasPrefix(body, `draw("`) || !strings.HasSuffix(body, `")`) {
		t.Errorf("jsonp: %.100s", body)
	}
	if body := request(h, "target=nothing&format=svg").Body; !strings.Contains(body, "No Data") {
		t.Errorf("nothing: %s", body)
	}
}

// The drawing functions change the image.
func TestDrawnFunctions(t *testing.T) {
	h := example(t)
	for target, want := range map[string]string{
		"color(a.one,'#123456')": `stroke="#123456"`, "dashed(a.one,7)": `stroke-dasharray="7"`, "lineWidth(a.one,9)": `stroke-width="9"`,
		"alpha(a.one,0.5)": `stroke-opacity="0.5"`, "stacked(a.one)": "<polygon", "threshold(5,'limit','red')": ">limit<", "secondYAxis(a.one)": "secondYAxis(a.one)<",
		"areaBetween(a.*)": "<polygon",
	} {
		v := url.Values{"target": {target}, "from": {"999"}, "until": {"1050"}, "now": {"2000"}, "format": {"svg"}}
		if a := request(h, v.Encode()); a.Status != 200 || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d, no %s in\n%s", target, a.Status, want, a.Body)
		}
	}
}

func TestRefusedImages(t *testing.T) {
	h := example(t)
	for query, want := range map[string]string{
		"width=0": "from 1 to 8192", "height=x": "height must be a number", "width=8192&height=8192": "pixels", "bgcolor=nosuch": "bgcolor: expected a colour",
		"colorList=red,,": "colorList", "lineMode=nosuch": "lineMode must be one of", "areaMode=x": "areaMode", "yMin=NaN": "yMin", "graphType=pie": "pie",
		"target=color(a.one,%22nosuch%22)": "expected a colour",
	} {
		for _, format := range []string{"png", "svg"} {
			a := request(h, "target=a.one&from=999&until=1050&now=2000&format="+format+"&"+query)
			if a.Status != 400 || !bytes.Contains([]byte(a.Body), []byte(want)) {
				t.Errorf("%s: %d %.200s", query, a.Status, a.Body)
			}
		}
	}
}
