package lokitest

import "github.com/shaledb/shale/internal/model"

// Line is a line that Loki had.
type Line struct {
	Labels, Metadata model.Labels
	Time             int64 // Unix nanoseconds
	Text             string
}

// storedLines are the lines for queries, numbers and volumes.
func storedLines(begin int64) (all []Line) {
	add := func(labels model.Labels, at int64, text string, metadata model.Labels) {
		all = append(all, Line{labels, metadata, begin*1e9 + at, text})
	}
	a1, a2, b := model.LabelsOf("app", "a", "host", "1"), model.LabelsOf("app", "a", "host", "2"), model.LabelsOf("app", "b")
	add(a1, 0, "first of a", nil)
	add(a1, 1e9, "second of a", model.LabelsOf("trace", "t1", "user", "ä<>&\n"))
	add(a1, 2e9+1, `level=info msg="hi there" dur=10ms`, nil)
	add(a2, 3e9, `{"level":"error","status":500,"app":"inner","n":{"x":1}}`, model.LabelsOf("trace", "t2"))
	add(a2, 4e9, "quoted \" \\ \n\t\x00 <b>&\u2028 end", nil)
	add(b, 5e9, "of b", nil)
	add(b, 6e9, "last of b", nil)
	add(model.LabelsOf("__tenant_id__", "own", "app", "own"), 7e9, "a label of the tenant's name", nil)
	return all
}

// detectedLines are those that the endpoints of detected labels and fields see.
func detectedLines(begin int64) []Line {
	web := model.LabelsOf("app", "web", "host", "a1", "pod", "1", "port", "8080", "flag", "1", "id", "7d9c1f0e-1f4b-4a55-9a30-0e5f1b3c2d4e")
	other := model.LabelsOf("app", "web", "host", "a2", "pod", "2", "port", "8081", "flag", "0")
	db := model.LabelsOf("app", "db", "host", "a2", "pod", "3", "port", "9090", "one", "1", "three", "0")
	lines := []Line{
		{web, model.LabelsOf("trace", "t1"), 0, `{"user":{"id":7,"na me":"Ann"},"ms":12.5,"ok":true,"app":"json","took":"3ms","size":"5 MB","list":[1],"none":null}`},
		{web, model.LabelsOf("trace", "t2", "host", "x"), 1, `{"user":{"id":8,"na me":"Bob","pod":"y"},"ms":12.5,"ok":false,"app":"json","took":"1500ms","size":"5000000b","a":{"b":1},"a_b":2}`},
		{web, nil, 2, `{"ms":"later","trace":"inner","":"x"," ":"y","host_extracted":"z","user":{"id_extracted":3},"9":"digit"}`},
		{web, nil, 3, `{"broken":1,"rest":`},
		{web, nil, 4, `["an","array"]`},
		{web, nil, 5, ``},
		{other, model.LabelsOf("trace", "t2"), 2, "plain text without fields"},
		{other, nil, 3, `level=warn flag="2" user_id=nine ms=5 empty= x="quoted \" value" bad"key=1 9=digit`},
		{other, nil, 4, `level=warn broken="no end`},
		{db, nil, 3, `level=info msg="slow query" ms=1300 size=1.5MB trace=t3 three=7 up=true at=12:30`},
		{db, nil, 4, `level=info msg="slow query" ms=0x10 size=10KiB trace=t4 up=T at=1h`},
		{model.LabelsOf("app", "bare", "one", "2", "three", "1"), nil, 3, `GET /login 200 12ms`},
		{model.LabelsOf("app", "bare", "one", "3", "three", "2"), nil, 3, `GET /login?user=ann 200 12ms`},
	}
	for i := range lines {
		lines[i].Time = (begin + lines[i].Time) * 1e9
	}
	return lines
}
