package admin

import "github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"

// window is how much each side may send ahead, in bytes. A window that is found by measuring costs a ping for each message;
// on one machine there is no distance to measure.
const window = 1 << 20

// frameWriter writes bytes as frames.
type frameWriter struct {
	stream interface {
		Send(*adminpb.AttachFrame) error
	}
}

// Write implements [io.Writer].
func (w frameWriter) Write(p []byte) (int, error) {
	if err := w.stream.Send(&adminpb.AttachFrame{Data: append([]byte(nil), p...)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// frameReader reads frames as bytes.
type frameReader struct {
	stream interface {
		Recv() (*adminpb.AttachFrame, error)
	}
	rest []byte // of the last frame
}

// Read implements [io.Reader].
func (r *frameReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		frame, err := r.stream.Recv()
		if err != nil {
			return 0, err
		}
		r.rest = frame.GetData()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
