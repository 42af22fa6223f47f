package wire

import (
	"bytes"
	"strings"
	"testing"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

func TestTheHandshakeLine(t *testing.T) {
	for line, want := range map[string]struct{ address, fault string }{
		"1|1|unix|/run/x|grpc|\n":     {address: "/run/x"},
		"1|1|unix|/run/x|grpc":        {address: "/run/x"},
		"1|1|unix|/run/x|grpc||true":  {address: "/run/x"},
		"":                            {fault: "must be the handshake"},
		"hello":                       {fault: `"hello"`},
		"1|2|unix|/run/x|grpc|":       {fault: "versions 1 and 2"},
		"2|1|unix|/run/x|grpc|":       {fault: "versions 2 and 1"},
		"1|1|tcp|127.0.0.1:1|grpc|":   {fault: `network "tcp"`},
		"1|1|unix|/run/x|netrpc|":     {fault: `protocol "netrpc"`},
		"1|1|unix|/run/x|grpc|MIIBcg": {fault: "certificate"},
	} {
		got, err := address(line)
		if want.fault == "" && (err != nil || got != want.address) {
			t.Errorf("%q: %q, %v", line, got, err)
		}
		if want.fault != "" && (err == nil || !strings.Contains(err.Error(), want.fault)) {
			t.Errorf("%q: %v, want %q", line, err, want.fault)
		}
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add("1|1|unix|/run/x|grpc|")
	f.Fuzz(func(t *testing.T, line string) {
		if at, err := address(line); err == nil && !strings.Contains(line, at) {
			t.Errorf("%q became %q", line, at)
		}
	})
}

func chunk(part pb.Chunk_Part, data string, last bool) *pb.Chunk {
	return &pb.Chunk{Part: part, Data: []byte(data), Last: last}
}

func TestPiecesArePutTogether(t *testing.T) {
	const content, structured = pb.Chunk_PART_CONTENT, pb.Chunk_PART_STRUCTURED
	p := &parts{}
	for _, c := range []*pb.Chunk{
		chunk(content, "a", false), chunk(content, "b", true), chunk(content, "c", true), chunk(structured, "{}", true),
	} {
		if err := p.add(c); err != nil {
			t.Fatal(err)
		}
	}
	r, err := p.join(&pb.Result{Content: [][]byte{[]byte("d")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(bytes.Join(r.GetContent(), []byte(" "))); got != "ab c d" || string(r.GetStructured()) != "{}" {
		t.Errorf("content %q, structured %s", got, r.GetStructured())
	}
}

func TestPiecesThatMakeNoSenseAreRefused(t *testing.T) {
	const content, structured = pb.Chunk_PART_CONTENT, pb.Chunk_PART_STRUCTURED
	for name, c := range map[string]struct {
		chunks []*pb.Chunk
		result *pb.Result
		want   string
	}{
		"a part within another":    {[]*pb.Chunk{chunk(content, "a", false), chunk(structured, "b", true)}, nil, "another part"},
		"a part without an end":    {[]*pb.Chunk{chunk(content, "a", false)}, &pb.Result{}, "before the last piece"},
		"a value that comes twice": {[]*pb.Chunk{chunk(structured, "{}", true)}, &pb.Result{Structured: []byte("{}")}, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			p := &parts{}
			for _, piece := range c.chunks {
				if err == nil {
					err = p.add(piece)
				}
			}
			if err == nil {
				_, err = p.join(c.result)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func FuzzPieces(f *testing.F) {
	f.Add([]byte{0, 1, 3, 2}, []byte("abc"))
	f.Fuzz(func(_ *testing.T, kinds, data []byte) {
		p := &parts{}
		for _, k := range kinds {
			if p.add(&pb.Chunk{Part: pb.Chunk_Part(k & 1), Data: data, Last: k&2 != 0}) != nil {
				return
			}
		}
		if _, err := p.join(&pb.Result{Structured: data}); err != nil {
			return
		}
	})
}
