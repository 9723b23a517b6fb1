package prom

func (h *Handler) buildInfo(*request) (*answer, error) {
	v := &h.o.Version
	return &answer{write: func(b *body) {
		b.raw(`{"application":"Shale"`)
		for _, m := range [...][2]string{
			{`,"version":`, v.Version}, {`,"revision":`, v.Revision}, {`,"branch":`, v.Branch},
			{`,"buildUser":`, v.BuildUser}, {`,"buildDate":`, v.BuildDate}, {`,"goVersion":`, v.GoVersion},
		} {
			b.raw(m[0])
			b.str(m[1])
		}
		b.raw("}")
	}}, nil
}
