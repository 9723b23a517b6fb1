package fs_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
)

func open(t testing.TB, f vfs.FS, dir string) *fs.Bucket {
	t.Helper()
	b, err := fs.New(f, dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSuite(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		buckettest.Run(t, func(t testing.TB) bucket.Bucket { return open(t, vfs.NewMem(), "data/bucket") })
	})
	t.Run("disk", func(t *testing.T) {
		buckettest.Run(t, func(t testing.TB) bucket.Bucket { return open(t, vfs.Default, t.TempDir()+"/new/bucket") })
	})
}

func TestLeftovers(t *testing.T) {
	mem := vfs.NewMem()
	b := open(t, mem, "b")
	put := func(b bucket.Bucket) {
		t.Helper()
		if err := b.Put(context.Background(), "object", strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	put(b)
	for _, name := range []string{"b/.tmp/left", "b/.hidden", "b/x y"} {
		f, err := mem.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if err := b.List(context.Background(), "", func(name string, _ int64) error {
		if name == "object" {
			return nil
		}
		return errors.New(name)
	}); err != nil {
		t.Errorf("a file that is no object is listed: %v", err)
	}
	second := open(t, mem, "b")
	if names, _ := mem.List("b/.tmp"); len(names) != 2 {
		t.Errorf("%v: opening alone has removed what may be another process's", names)
	}
	put(second)
	if names, _ := mem.List("b/.tmp"); len(names) != 2 || slices.Contains(names, "left") {
		t.Errorf("%v are left, expected the locks of two writers", names)
	}
	if _, err := mem.Stat("b/.hidden"); err != nil {
		t.Errorf("a file of somebody else: %v", err)
	}
}

// TestUploadNextToAnotherWriter: the first write of another process does not touch an upload in flight. It
// removes the files of a writer that was killed.
func TestUploadNextToAnotherWriter(t *testing.T) {
	if dir := os.Getenv("SHALE_TEST_WRITER"); dir != "" {
		// The child: it reads the object from its standard input.
		b := open(t, vfs.Default, dir)
		if err := b.Put(t.Context(), "upload", os.Stdin, 6); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	start := func() (child *exec.Cmd, object io.WriteCloser) {
		child = exec.Command(os.Args[0], "-test.run=^TestUploadNextToAnotherWriter$")
		child.Env = append(os.Environ(), "SHALE_TEST_WRITER="+dir)
		object, err := child.StdinPipe()
		if err == nil {
			err = child.Start()
		}
		if err == nil {
			_, err = object.Write([]byte("abc"))
		}
		if err != nil {
			t.Fatal(err)
		}
		return child, object
	}
	temporaryFiles := func() (names []string) {
		all, _ := filepath.Glob(dir + "/.tmp/*-*")
		return all
	}
	upload, object := start()
	killed, _ := start()
	for deadline := time.Now().Add(20 * time.Second); len(temporaryFiles()) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the other processes do not write")
		}
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if err := open(t, vfs.Default, dir).Put(t.Context(), "mine", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	if got := temporaryFiles(); len(got) != 1 {
		t.Errorf("temporary files %v are left, expected those of the process that lives", got)
	}
	if _, err := object.Write([]byte("def")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(object.Close(), upload.Wait()); err != nil {
		t.Fatalf("the upload of the other process: %v", err)
	}
	if got, err := open(t, vfs.Default, dir).Get(t.Context(), "upload"); err != nil || string(got) != "abcdef" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLostTemporaryFile: an upload whose temporary file was removed is tried again. It does not look like a
// missing object.
func TestLostTemporaryFile(t *testing.T) {
	mem := vfs.NewMem()
	lose := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename {
			return mem.Remove(op.Path)
		}
		return nil
	})
	b := open(t, errorfs.Wrap(mem, lose), "b")
	if err := b.Put(t.Context(), "a", strings.NewReader("x"), 1); !errors.Is(err, model.ErrTransient) || errors.Is(err, bucket.ErrNotFound) {
		t.Error(err)
	}
}

// TestCrash cuts the power before each operation. What was put is there and whole, and what was deleted stays
// away.
func TestCrash(t *testing.T) {
	type crash struct {
		fs       vfs.FS
		have     map[string]string // acknowledged
		deleted  map[string]bool   // acknowledged
		pending  string            // the name of the operation that was going on
		contents map[string]bool   // anything that was ever put
	}
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(1, 1))
	have, deleted, contents, pending := map[string]string{}, map[string]bool{}, map[string]bool{}, ""
	var crashes []crash
	cut := func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		for _, percent := range []int{0, 50, 100} {
			c := crash{have: map[string]string{}, deleted: map[string]bool{}, pending: pending, contents: contents}
			for k, v := range have {
				c.have[k] = v
			}
			for k := range deleted {
				c.deleted[k] = true
			}
			c.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			crashes = append(crashes, c)
		}
		return nil
	}
	b := open(t, errorfs.Wrap(mem, errorfs.InjectorFunc(cut)), "data/bucket")
	ctx := context.Background()
	for i := range 12 {
		name := []string{"blocks/a", "blocks/b", "catalog/c", "seed"}[i%4]
		data := strings.Repeat(string(rune('a'+i)), 5000+i)
		contents[data] = true
		switch pending = name; {
		case i == 3 || i == 7 || i == 11:
			created, err := b.PutIfAbsent(ctx, name, []byte(data))
			if err != nil || created != (i == 3) {
				t.Fatal(created, err)
			}
			if created {
				have[name] = data
			}
		case i == 6:
			if err := b.Delete(ctx, name); err != nil {
				t.Fatal(err)
			}
			delete(have, name)
			deleted[name] = true
		default:
			if err := b.Put(ctx, name, strings.NewReader(data), int64(len(data))); err != nil {
				t.Fatal(err)
			}
			have[name] = data
			delete(deleted, name)
		}
		pending = ""
	}
	t.Logf("%d crashes", len(crashes))
	for i, c := range crashes {
		b := open(t, c.fs, "data/bucket")
		for name, data := range c.have {
			got, err := b.Get(ctx, name)
			switch {
			case name == c.pending && err == nil && contents[string(got)]:
			case name == c.pending && errors.Is(err, bucket.ErrNotFound): // a deletion was going on
			case err != nil || string(got) != data:
				t.Fatalf("crash %d: %s: %d bytes, %v", i, name, len(got), err)
			}
		}
		if err := b.List(ctx, "", func(name string, _ int64) error {
			got, err := b.Get(ctx, name)
			if err != nil || !contents[string(got)] {
				t.Errorf("crash %d: %s has %d bytes that nobody put, %v", i, name, len(got), err)
			}
			if c.deleted[name] && name != c.pending {
				t.Errorf("crash %d: %s has come back", i, name)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestErrors lets each kind of operation fail. The error is transient, no object is damaged, and it works
// again later.
func TestErrors(t *testing.T) {
	errDisk := errors.New("no space left on device")
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpOpenDir} {
		mem := vfs.NewMem()
		var broken errorfs.Toggle
		broken.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind {
				return errDisk
			}
			return nil
		})
		b := open(t, errorfs.Wrap(mem, &broken), "b")
		ctx := context.Background()
		put := func(data string) error { return b.Put(ctx, "x/a", strings.NewReader(data), int64(len(data))) }
		if err := put("old"); err != nil {
			t.Fatal(err)
		}
		broken.On()
		if err := put("new"); !errors.Is(err, model.ErrTransient) || !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "x/a") {
			t.Errorf("operation %d: %v", kind, err)
		}
		broken.Off()
		if got, err := b.Get(ctx, "x/a"); err != nil || string(got) != "old" && string(got) != "new" {
			t.Errorf("operation %d: %q, %v", kind, got, err)
		}
		if err := put("newer"); err != nil {
			t.Errorf("operation %d: %v", kind, err)
		}
	}
}

func TestNameThatIsAFolder(t *testing.T) {
	b := open(t, vfs.Default, t.TempDir())
	ctx := context.Background()
	if err := b.Put(ctx, "a/b", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(ctx, "a", strings.NewReader("x"), 1); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("an object where a folder is: %v", err)
	}
	if err := b.Put(ctx, "a/b/c", strings.NewReader("x"), 1); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("an object below an object: %v", err)
	}
	if _, err := b.Get(ctx, "a/b/c"); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("get below an object: %v", err)
	}
	if err := b.Delete(ctx, "a/b/c"); err != nil {
		t.Errorf("delete below an object: %v", err)
	}
}
