// Package webhook posts signed JSON to one address that the operator named.
//
// Every request carries these headers; the receiver checks the signature over the bytes of the body as they came:
//
//	X-Hermesd-Event      what the body is about, such as "pre_call"
//	X-Hermesd-Delivery   a random id, the same when a delivery is tried again
//	X-Hermesd-Timestamp  Unix seconds of the attempt; a receiver refuses old ones
//	X-Hermesd-Signature  "sha256=" and the hex HMAC-SHA256 of "<timestamp>.<delivery>.<body>" with the shared secret;
//	                     left out if there is no secret
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The headers.
const (
	EventHeader     = "X-Hermesd-Event"
	DeliveryHeader  = "X-Hermesd-Delivery"
	TimestampHeader = "X-Hermesd-Timestamp"
	SignatureHeader = "X-Hermesd-Signature"
)

const (
	// DefaultTimeout bounds a delivery whose context has no deadline.
	DefaultTimeout = 30 * time.Second
	// MaxAnswer is how much of an answer is read, in bytes; a longer one is an error.
	MaxAnswer = 1 << 20
	// retryAfter lets a receiver that is just being restarted come back.
	retryAfter = 200 * time.Millisecond
)

// Options say where to post.
type Options struct {
	// URL is https, or http on loopback.
	URL string
	// Secret signs; "" leaves requests unsigned.
	Secret string
}

// Client posts to one address. It follows no redirect and uses no proxy, so that nothing reaches another one.
type Client struct {
	url    string
	secret []byte
	http   *http.Client
}

// Reply is a receiver's answer of status 2xx.
type Reply struct {
	Delivery string // the id of the delivery that it answers
	Status   int
	Header   http.Header
	Body     []byte
}

// New checks the address. It connects to nothing.
func New(opts *Options) (*Client, error) {
	u, err := url.Parse(opts.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("webhook: %w", err)
	case u.Host == "" || u.User != nil:
		u.User = nil // a token may stand in the place of the user name
		return nil, fmt.Errorf("webhook: %q must be an address like https://example.com/path, without user and password", u)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, fmt.Errorf("webhook: %q must be https; http is for this machine's own addresses", u)
	}
	return &Client{url: u.String(), secret: []byte(opts.Secret), http: &http.Client{
		Transport: &http.Transport{
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // an answer's bound is that of its bytes on the wire
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        time.Minute,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close lets idle connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Post delivers a body within ctx, and tries once more if the connection failed or the receiver answered 5xx. Any other
// status than 2xx is an error.
func (c *Client) Post(ctx context.Context, event string, body []byte) (*Reply, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	delivery := rand.Text()
	reply, again, err := c.attempt(ctx, event, delivery, body)
	if err == nil || !again {
		return reply, err
	}
	select {
	case <-time.After(retryAfter):
	case <-ctx.Done():
		return nil, err
	}
	reply, _, second := c.attempt(ctx, event, delivery, body)
	if second != nil {
		return nil, fmt.Errorf("%w (tried twice)", second)
	}
	return reply, nil
}

func (c *Client) attempt(ctx context.Context, event, delivery string, body []byte) (_ *Reply, again bool, _ error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, false, fmt.Errorf("webhook: %w", err)
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "hermesd")
	req.Header.Set(EventHeader, event)
	req.Header.Set(DeliveryHeader, delivery)
	req.Header.Set(TimestampHeader, stamp)
	if len(c.secret) > 0 {
		req.Header.Set(SignatureHeader, Sign(c.secret, stamp, delivery, string(body)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, ctx.Err() == nil, fmt.Errorf("webhook: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, resp.StatusCode >= 500, fmt.Errorf("webhook: the receiver answered %s", statusText(resp))
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err != nil {
		return nil, false, fmt.Errorf("webhook: the receiver broke off its answer: %w", err)
	}
	if len(answer) > MaxAnswer {
		return nil, false, fmt.Errorf("webhook: the receiver's answer is over %d bytes", MaxAnswer)
	}
	return &Reply{Delivery: delivery, Status: resp.StatusCode, Header: resp.Header, Body: answer}, false, nil
}

// withoutURL takes the address off an error: its path or query may be secret.
func withoutURL(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func statusText(resp *http.Response) string {
	if resp.StatusCode >= 300 && resp.StatusCode <= 399 {
		return fmt.Sprintf("with a redirect (%d), which is not followed; configure the final address", resp.StatusCode)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}

// Sign is the signature of some parts, which are joined by dots.
func Sign(secret []byte, parts ...string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.Join(parts, ".")))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Signed reports whether the receiver signed its reply: [SignatureHeader] of "answer.<delivery>.<body>" with the shared
// secret. The delivery's id makes an old answer worthless.
func (c *Client) Signed(r *Reply) bool {
	want := Sign(c.secret, "answer", r.Delivery, string(r.Body))
	return len(c.secret) > 0 && hmac.Equal([]byte(want), []byte(r.Header.Get(SignatureHeader)))
}
