package graph

import (
	"strconv"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// The fonts are parsed once.
var (
	regular = sync.OnceValue(func() *opentype.Font { return parse(goregular.TTF) })
	bold    = sync.OnceValue(func() *opentype.Font { return parse(gobold.TTF) })
)

func parse(ttf []byte) *opentype.Font {
	f, err := opentype.Parse(ttf)
	if err != nil {
		panic(err) // the bytes are part of the program
	}
	return f
}

// fonts are the faces of one graph: a face may be used by one goroutine.
type fonts struct {
	faces map[faceKey]font.Face
}

type faceKey struct {
	size float64
	bold bool
}

func newFonts() *fonts { return &fonts{faces: make(map[faceKey]font.Face)} }

func (f *fonts) face(size float64, isBold bool) font.Face {
	key := faceKey{size, isBold}
	if face := f.faces[key]; face != nil {
		return face
	}
	of := regular
	if isBold {
		of = bold
	}
	face, err := opentype.NewFace(of(), &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		panic(err) // no size makes it fail
	}
	f.faces[key] = face
	return face
}

// width returns the width of a text in pixels.
func (f *fonts) width(s string, size float64, isBold bool) float64 {
	return float64(font.MeasureString(f.face(size, isBold), s)) / 64
}

func itoa(n int) string { return strconv.Itoa(n) }
