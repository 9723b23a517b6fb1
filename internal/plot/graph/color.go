package graph

import (
	"fmt"
	"image/color"
	"strconv"
	"strings"
)

// names are the colours of graphite-web.
var names = map[string]color.NRGBA{
	"black": {0, 0, 0, 255}, "white": {255, 255, 255, 255}, "blue": {100, 100, 255, 255}, "green": {0, 200, 0, 255},
	"red": {200, 0, 50, 255}, "yellow": {255, 255, 0, 255}, "orange": {255, 165, 0, 255}, "purple": {200, 100, 255, 255},
	"brown": {150, 100, 50, 255}, "cyan": {0, 255, 255, 255}, "aqua": {0, 150, 150, 255}, "gray": {175, 175, 175, 255},
	"grey": {175, 175, 175, 255}, "magenta": {255, 0, 255, 255}, "pink": {255, 100, 100, 255}, "gold": {200, 200, 0, 255},
	"rose": {200, 150, 200, 255}, "darkblue": {0, 0, 255, 255}, "darkgreen": {0, 255, 0, 255}, "darkred": {255, 0, 0, 255},
	"darkgray": {111, 111, 111, 255}, "darkgrey": {111, 111, 111, 255},
}

// ParseColor reads a colour: a name of graphite-web, or six or eight hexadecimal digits, with or without a
// #. The last two of eight digits are how opaque it is.
func ParseColor(text string) (color.NRGBA, error) {
	if c, ok := names[strings.ToLower(text)]; ok {
		return c, nil
	}
	digits := strings.TrimPrefix(text, "#")
	n, err := strconv.ParseUint(digits, 16, 32)
	switch {
	case err == nil && len(digits) == 6:
		return color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}, nil
	case err == nil && len(digits) == 8:
		return color.NRGBA{uint8(n >> 24), uint8(n >> 16), uint8(n >> 8), uint8(n)}, nil
	}
	return color.NRGBA{}, fmt.Errorf("expected a colour such as blue or #6464ff, found %.100q", text)
}

// Palette returns the colours that graphite-web gives to curves in turn.
func Palette() []color.NRGBA {
	var all []color.NRGBA
	for _, name := range strings.Split("blue,green,red,purple,brown,yellow,aqua,grey,magenta,pink,gold,rose", ",") {
		all = append(all, names[name])
	}
	return all
}
