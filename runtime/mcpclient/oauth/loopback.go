package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// Callback waits on a loopback address for the browser that comes back from the authorization server (RFC 8252 section
// 7.3).
type Callback struct {
	listener net.Listener
	show     func(link string)
}

// callbackPath is where the browser is sent to.
const callbackPath = "/callback"

// Listen opens a callback on a port of 127.0.0.1 (0: any). show is given the link that a person opens.
func Listen(port int, show func(link string)) (*Callback, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("the login's callback: %w", err)
	}
	return &Callback{l, show}, nil
}

// RedirectURL is the callback's address.
func (c *Callback) RedirectURL() string { return "http://" + c.listener.Addr().String() + callbackPath }

// Close stops listening.
func (c *Callback) Close() error {
	if err := c.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Fetch implements [auth.AuthorizationCodeFetcher]: it shows the link and waits until ctx ends for the browser. It may be
// used once.
func (c *Callback) Fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	link, err := url.Parse(args.URL)
	if err != nil {
		return nil, err
	}
	back := make(chan url.Values, 1)
	server := &http.Server{Handler: answerBrowser(link.Query().Get("state"), back), ReadTimeout: requestTime, WriteTimeout: requestTime}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(c.listener) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the browser is still reading its page
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close() //nolint:errcheck // nothing more can be done
		}
		<-ended
	}()
	c.show(args.URL)
	select {
	case q := <-back:
		if reason := q.Get("error"); reason != "" {
			return nil, fmt.Errorf("the authorization server refused: %s %s", said(reason, nil), said(q.Get("error_description"), nil))
		}
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("nobody came back from the link: %w", context.Cause(ctx))
	}
}

// answerBrowser takes the first request that knows the state. Others are none of ours, and change nothing.
func answerBrowser(state string, back chan<- url.Values) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+callbackPath, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if state == "" || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "This page belongs to another login.", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		text := "hermesd is logged in. You can close this page."
		if q.Get("error") != "" {
			text = "The login did not work; hermesd says why. You can close this page."
		}
		fmt.Fprintf(w, "<!doctype html><title>hermesd</title><p>%s</p>", text) //nolint:errcheck // the browser may be gone
		select {
		case back <- q:
		default:
		}
	})
	return mux
}
