package wire

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/hermesd/hermesd/pluginsdk/internal/serve"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// goroutineLabel marks the goroutines of an instance in this process, those that its tools start among them.
const goroutineLabel = "hermesd-plugin"

// InProcess is a plugin that is served in this process. New makes a fresh one for every instance, normally by
// pluginsdk.NewServer.
type InProcess struct {
	New func() (pb.PluginServer, error)
}

// Open implements [Target].
func (p InProcess) Open(_ context.Context, opts *OpenOptions) (*Session, error) {
	server, err := p.New()
	if err != nil {
		return nil, err
	}
	limit := opts.limit()
	lis := bufconn.Listen(1 << 20)
	s := &Session{limit: limit, label: strconv.FormatUint(instances.Add(1), 10)}
	pprof.Do(context.Background(), pprof.Labels(goroutineLabel, s.label), func(context.Context) {
		stop := serve.InProcess(server, lis, limit)
		s.end = func() error { stop(); return nil }
	})
	s.conn, err = grpc.NewClient("passthrough:plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit)))
	if err != nil {
		return nil, err
	}
	s.PluginClient = pb.NewPluginClient(s.conn)
	return s, nil
}

// instances counts them, so that each has a label of its own.
var instances atomic.Uint64

// Leaked returns the stacks of the goroutines that an instance in this process left behind after Close, waiting a moment
// for those that are about to end. It is "" for a process.
func (s *Session) Leaked(wait time.Duration) (string, error) {
	if s.label == "" {
		return "", nil
	}
	deadline := time.Now().Add(wait)
	for {
		stacks, err := labelled(s.label)
		if err != nil || stacks == "" || time.Now().After(deadline) {
			return stacks, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// labelled returns the records of the goroutine profile that carry a label.
func labelled(label string) (string, error) {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return "", fmt.Errorf("read the goroutine profile: %w", err)
	}
	var found []string
	for record := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(record, fmt.Sprintf("%q:%q", goroutineLabel, label)) {
			found = append(found, record)
		}
	}
	return strings.Join(found, "\n\n"), nil
}
