//go:build e2e

package badinput

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// aULID names the folder of a block of Prometheus.
const aULID = "01JD2M6X0E2FZ3V1W8Q4K7N5RA"

// summed returns an object of the catalogue with its checksum, as docs/format-bucket.md describes it.
func summed(body string) string {
	return fmt.Sprintf("crc32c %08x\n%s\n", crc32.Checksum([]byte(body+"\n"), crc32.MakeTable(crc32.Castagnoli)), body)
}

// aSeed is the seed of an empty bucket.
func aSeed() string { return summed(`{"version":1,"seed":"0000000000005eed"}`) }

// folderOf makes a folder with files.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// movingIn is what the commands that copy buckets and import blocks refuse, and the URLs that name buckets.
func movingIn(bin string) group {
	g := group{file: "moving-in", title: "Copies, imports and URLs of buckets"}
	// In words, DIR is a folder with the files. FILE, FOLDER and CLOSED are as in commandLine.
	try := func(input, words string, files map[string]string) {
		g.attacks = append(g.attacks, attack{input: input, do: func(t *testing.T, _ *server) (string, string) {
			dir, other := folderOf(t, files), foreign(t)
			args := strings.NewReplacer("FILE", filepath.Join(other, "notes.txt"), "FOLDER", other, "DIR", dir, "CLOSED", freeAddr(t)).Replace(words)
			outcome, text := runCommand(t, bin, t.TempDir(), nil, 20*time.Second, strings.Fields(args)...)
			return outcome, strings.NewReplacer(dir, "DIR", other, "FOLDER").Replace(text)
		}})
	}
	empty := map[string]string{"seed": aSeed()}
	for _, words := range []string{
		"bucket", "bucket copy", "bucket copy DIR", "bucket copy DIR DIR", "bucket copy DIR DIR/.", "bucket copy /nonexistent DIR", "bucket copy FILE DIR",
		"bucket copy FOLDER DIR", "bucket copy DIR FILE", "bucket copy DIR FILE/x", "bucket copy DIR FOLDER", "bucket copy DIR FOLDER/x --concurrency 0",
		"bucket copy DIR FOLDER/x --concurrency many", "bucket copy http://CLOSED DIR", "bucket copy s3://Name DIR", "bucket copy DIR s3://key:secret@name",
		"bucket copy DIR s3://name?secret-key=secret", "bucket copy s3://name?endpoint=http://CLOSED&anonymous=1 DIR", "bucket copy DIR s3://name?endpoint=http://CLOSED&anonymous=1",
		"bucket copy gs://name?endpoint=http://CLOSED&anonymous=1 DIR", "bucket copy azblob://name?endpoint=http://CLOSED/a&anonymous=1 DIR",
	} {
		try("shale "+words+", DIR is an empty bucket", words, empty)
	}
	const record = "catalog/ship-0000000000000001.json"
	for _, c := range []struct {
		what  string
		files map[string]string
	}{
		{"with a seed without a checksum", map[string]string{"seed": `{"version":1,"seed":"0000000000005eed"}`}},
		{"with a seed of version 9", map[string]string{"seed": summed(`{"version":9,"seed":"0000000000005eed"}`)}},
		{"with a seed that is not JSON", map[string]string{"seed": summed(`seed`)}},
		{"with blocks and no seed", map[string]string{"blocks/x": "data"}},
		{"with a record that is not JSON", map[string]string{"seed": aSeed(), record: summed(`{{{{`)}},
		{"with a record with a wrong checksum", map[string]string{"seed": aSeed(), record: "crc32c 00000000\n{}\n"}},
		{"with a record of version 9", map[string]string{"seed": aSeed(), record: summed(`{"version":9,"id":"ship-0000000000000001"}`)}},
		{"with a record under another name", map[string]string{"seed": aSeed(), record: summed(`{"version":2,"id":"ship-0000000000000002"}`)}},
		{"with an empty record", map[string]string{"seed": aSeed(), record: ""}},
		{"with a record of an unknown kind", map[string]string{"seed": aSeed(), "catalog/holiday-0000000000000001.json": summed(`{"version":2,"id":"holiday-0000000000000001"}`)}},
		{"with a record of 10,000 nested lists", map[string]string{"seed": aSeed(), record: summed(`{"version":2,"id":` + strings.Repeat("[", 10_000))}},
	} {
		try("shale bucket copy from a bucket "+c.what, "bucket copy DIR FOLDER/x", c.files)
	}
	const meta = aULID + "/meta.json"
	block := func(json string) map[string]string { return map[string]string{meta: json} }
	good := `{"ulid":"` + aULID + `","minTime":0,"maxTime":7200000,"version":1,"stats":{"numSamples":1,"numSeries":1}}`
	for _, words := range []string{
		"import", "import tsdb", "import tsdb /nonexistent", "import tsdb FILE", "import tsdb FOLDER", "import tsdb DIR --address x", "import tsdb DIR --address ftp://CLOSED",
		"import tsdb DIR --start soon", "import tsdb DIR --start 2 --end 1 --address http://CLOSED", "import tsdb DIR --concurrency 0", "import tsdb DIR --patience x",
		"import tsdb DIR --work-dir FILE", "import tsdb DIR --state FILE", "import tsdb DIR --state FOLDER", "import tsdb DIR --state /nonexistent/x",
		"import tsdb DIR --address http://CLOSED", "import tsdb DIR/" + aULID + " --address http://CLOSED",
		"import tsdb s3://Name", "import tsdb s3://key:secret@name", "import tsdb s3://name?secret-key=secret", "import tsdb http://CLOSED",
		"import tsdb s3://name?endpoint=http://CLOSED&anonymous=1", "import tsdb gs://name?endpoint=http://CLOSED&anonymous=1", "import tsdb azblob://name?endpoint=http://CLOSED/a&anonymous=1",
	} {
		try("shale "+words+", DIR has a block without an index", words, block(good))
	}
	for _, c := range [][2]string{
		{"is empty", ""}, {"is not JSON", "{{{{"}, {"is binary", "\x00\x01\xff\xfe"}, {"is an empty object", "{}"}, {"is of version 2", strings.Replace(good, `"version":1`, `"version":2`, 1)},
		{"has no ulid", strings.Replace(good, aULID, "", 1)}, {"has a wrong ulid", strings.Replace(good, aULID, "holiday", 1)},
		{"ends before it begins", strings.Replace(good, `"minTime":0`, `"minTime":7200001`, 1)}, {"ends in a million years", strings.Replace(good, "7200000", "31556952000000000", 1)},
		{"has a time that overflows", strings.Replace(good, "7200000", "99999999999999999999", 1)}, {"has labels that are a list", strings.Replace(good, `"version"`, `"thanos":{"labels":[]},"version"`, 1)},
		{"has a negative number of samples", strings.Replace(good, `"numSamples":1`, `"numSamples":-1`, 1)},
	} {
		try("shale import tsdb of a block whose meta.json "+c[0], "import tsdb DIR --address http://CLOSED", block(c[1]))
	}
	try("shale import tsdb of a block with an index that is not one", "import tsdb DIR --address http://CLOSED", map[string]string{meta: good, aULID + "/index": "index", aULID + "/chunks/000001": "chunks"})
	try("shale import tsdb of a block without meta.json", "import tsdb DIR --address http://CLOSED", map[string]string{aULID + "/index": "index"})
	try("shale import tsdb of a block that is marked for deletion", "import tsdb DIR --address http://CLOSED", map[string]string{meta: good, aULID + "/deletion-mark.json": "{}"})
	try("shale import tsdb of two tenants as one", "import tsdb DIR --tenant a --address http://CLOSED", map[string]string{"a/" + meta: good, "b/" + meta: good})
	for _, url := range []string{
		"s3://name#x", "s3://name?region=", "s3://name?region=a&region=b", "s3://name?region=a&secret", "s3://name?region=%zz", "s3://name/%61", "s3://name/../x", "s3://na_me", "s3:///x",
		"s3://name?path-style=true", "s3://name?anonymous=yes", "s3://name?anonymous=1&credentials-file=FILE", "s3://name?endpoint=http://u:secret@h", "s3://name?endpoint=http://h/path",
		"s3://name?encryption=none", "s3://name?encryption=kms:", "gs://name?encryption=aes256", "gs://Name", "azblob://name?account=a.b", "azblob://my.name?account=a", "azblob://name?account=a&storage-class=archive",
		"gs://name?endpoint=http://CLOSED&anonymous=1", "s3://name?endpoint=http://CLOSED&anonymous=1", "azblob://name?endpoint=http://CLOSED/a&anonymous=1", "s3://name?endpoint=http://CLOSED&credentials-file=FILE",
	} {
		try("shale inspect bucket "+url, "inspect bucket "+url, nil)
	}
	return g
}
