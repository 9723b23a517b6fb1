package prom

func (h *Handler) buildInfo(*request) (*answer, error) {
	v := &h.o.Version
	return &answer{write: func(b *body) {
		b.Raw(`{"application":"Shale"`)
		for _, m := range [...][2]string{
			{`,"version":`, v.Version}, {`,"revision":`, v.Revision}, {`,"branch":`, v.Branch},
			{`,"buildUser":`, v.BuildUser}, {`,"buildDate":`, v.BuildDate}, {`,"goVersion":`, v.GoVersion},
		} {
			b.Raw(m[0])
			b.Str(m[1])
		}
		b.Raw("}")
	}}, nil
}
