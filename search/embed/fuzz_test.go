package embed

import (
	"bytes"
	"log/slog"
	"testing"
)

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[0.5,-1e-3]}]}`), 2)
	f.Add([]byte(`{"data":[{"embedding":[1e38]}]}`), 1)
	f.Add([]byte(`{"data":null}`), 0)
	f.Fuzz(func(t *testing.T, answer []byte, n int) {
		if n < 0 || n > batchSize {
			return
		}
		vectors, err := decode(answer, n)
		if err != nil {
			return
		}
		if len(vectors) != n {
			t.Fatalf("%d vectors for %d texts", len(vectors), n)
		}
		for _, v := range vectors {
			if near := compress(v).dot(v); !(near > .9 && near < 1.1) {
				t.Fatalf("a vector is as near as %v to itself: %v", near, v)
			}
		}
	})
}

func FuzzShelf(f *testing.F) {
	s := &shelf{dimension: 3}
	whole := appendRecord(s.head(), digestOf("a"), compress([]float32{0, .6, -.8}))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Fuzz(func(t *testing.T, content []byte) {
		s := &shelf{log: slog.New(slog.DiscardHandler), vectors: map[digest]*vector{}}
		good, err := s.read(bytes.NewReader(content))
		if err != nil || good > int64(len(content)) {
			t.Fatalf("%d of %d bytes are good, %v", good, len(content), err)
		}
		for _, v := range s.vectors {
			if len(v.values) != s.dimension {
				t.Fatalf("%d numbers", len(v.values))
			}
		}
	})
}
