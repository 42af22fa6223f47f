package approval_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/hooks/webhook"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cret"

// receiver is an operator's program that gets the webhook's requests.
func receiver(t *testing.T, answer func(w http.ResponseWriter, delivery string, body approval.WebhookBody)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		delivery := r.Header.Get(webhook.DeliveryHeader)
		if want := webhook.Sign([]byte(secret), r.Header.Get(webhook.TimestampHeader), delivery, string(raw)); r.Header.Get(webhook.SignatureHeader) != want {
			t.Error("the request is not signed")
		}
		var body approval.WebhookBody
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Error(err)
		}
		answer(w, delivery, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func reply(w http.ResponseWriter, key, delivery string, answers ...approval.WebhookAnswer) {
	raw, err := json.Marshal(approval.WebhookAnswers{Answers: answers})
	if err != nil {
		panic(err)
	}
	w.Header().Set(webhook.SignatureHeader, webhook.Sign([]byte(key), "answer", delivery, string(raw)))
	w.Write(raw) //nolint:errcheck // the test sees what arrives
}

func TestAWebhookAnswersInItsResponse(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter, delivery string, body approval.WebhookBody)
		code   tool.Code
	}{
		"yes": {func(w http.ResponseWriter, d string, b approval.WebhookBody) {
			reply(w, secret, d, approval.WebhookAnswer{ID: b.Requests[0].ID, Binding: b.Requests[0].Binding, Choice: approval.Once})
		}, ""},
		"no": {func(w http.ResponseWriter, d string, b approval.WebhookBody) {
			reply(w, secret, d, approval.WebhookAnswer{ID: b.Requests[0].ID, Binding: b.Requests[0].Binding, Choice: approval.Deny})
		}, tool.ApprovalDenied},
		"a yes with another secret": {func(w http.ResponseWriter, d string, b approval.WebhookBody) {
			reply(w, "guess", d, approval.WebhookAnswer{ID: b.Requests[0].ID, Binding: b.Requests[0].Binding, Choice: approval.Once})
		}, tool.NobodyAsked},
		"an old yes": {func(w http.ResponseWriter, _ string, b approval.WebhookBody) {
			reply(w, secret, "an earlier delivery", approval.WebhookAnswer{ID: b.Requests[0].ID, Binding: b.Requests[0].Binding, Choice: approval.Once})
		}, tool.NobodyAsked},
		"a yes without a binding": {func(w http.ResponseWriter, d string, b approval.WebhookBody) {
			reply(w, secret, d, approval.WebhookAnswer{ID: b.Requests[0].ID, Choice: approval.Once})
		}, tool.NobodyAsked},
		"a yes to something else": {func(w http.ResponseWriter, d string, b approval.WebhookBody) {
			reply(w, secret, d, approval.WebhookAnswer{ID: "other", Binding: b.Requests[0].Binding, Choice: approval.Once})
		}, tool.NobodyAsked},
		"nothing, without a URL to answer at later": {func(http.ResponseWriter, string, approval.WebhookBody) {}, tool.NobodyAsked},
		"half a JSON": {func(w http.ResponseWriter, d string, _ approval.WebhookBody) {
			w.Header().Set(webhook.SignatureHeader, webhook.Sign([]byte(secret), "answer", d, `{"answers":[`))
			io.WriteString(w, `{"answers":[`) //nolint:errcheck // as above
		}, tool.NobodyAsked},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := approval.NewWebhook(&webhook.Options{URL: receiver(t, tt.answer), Secret: secret}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.(io.Closer).Close()
			b := newBroker(t, func(o *approval.Options) { o.Channels = []approval.Channel{c} })
			if a := b.Ask(t.Context(), ask(request()))[0]; code(a.Err) != tt.code {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestAWebhookWithoutASecretIsRefused(t *testing.T) {
	if _, err := approval.NewWebhook(&webhook.Options{URL: "https://example.com"}, nil); err == nil {
		t.Error("anybody could answer")
	}
}

func TestALinkAnswersOnce(t *testing.T) {
	links := make(chan string, 1)
	var b *approval.Broker
	var front *httptest.Server
	c, err := approval.NewWebhook(&webhook.Options{Secret: secret, URL: receiver(t, func(_ http.ResponseWriter, _ string, body approval.WebhookBody) {
		links <- body.Requests[0].AnswerURL
	})}, func(p *approval.Pending) (string, error) { return b.Link(front.URL, p) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.(io.Closer).Close()
	b = newBroker(t, func(o *approval.Options) { o.Channels = []approval.Channel{c} })
	front = httptest.NewServer(b.Links())
	defer front.Close()
	client := front.Client()
	r := request(arguments(`{"disk":"<script>"}`))
	out := make(chan approval.Answer, 1)
	go func() { out <- b.Ask(t.Context(), ask(r))[0] }()
	link := <-links

	do := func(method, address, kind, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(raw)
	}
	status, page := do(http.MethodGet, link, "", "")
	if status != http.StatusOK || !strings.Contains(page, "&lt;script&gt;") || !strings.Contains(page, `value="once"`) {
		t.Errorf("%d %s", status, page)
	}
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	state, err := approval.Seal(approval.Key{1, 2, 3}, &approval.State{Items: []approval.StateItem{{ID: b.List()[0].ID, Binding: b.List()[0].Binding}}, Expires: time.Now().Add(time.Hour).UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		method, address, kind, body string
		status                      int
	}{
		"a link without its token":     {http.MethodPost, strings.Split(link, "?")[0], "application/json", `{"choice":"once"}`, http.StatusForbidden},
		"a link that was changed":      {http.MethodPost, strings.Replace(link, "token=", "token=A", 1), "application/json", `{"choice":"once"}`, http.StatusForbidden},
		"a request state for a link":   {http.MethodPost, front.URL + u.Path + "?token=" + state, "application/json", `{"choice":"once"}`, http.StatusForbidden},
		"a choice that does not exist": {http.MethodPost, link, "application/json", `{"choice":"yes"}`, http.StatusBadRequest},
		"half an answer":               {http.MethodPost, link, "application/json", `{"choice":`, http.StatusBadRequest},
		"an answer that is too long":   {http.MethodPost, link, "application/json", `{"reason":"` + strings.Repeat("x", 20_000) + `"}`, http.StatusBadRequest},
		"another method":               {http.MethodPut, link, "application/json", `{"choice":"once"}`, http.StatusMethodNotAllowed},
	} {
		if status, body := do(tt.method, tt.address, tt.kind, tt.body); status != tt.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, body := do(http.MethodPost, link, "application/x-www-form-urlencoded", "choice=once"); status != http.StatusNoContent {
		t.Errorf("the answer: %d %s", status, body)
	}
	a := <-out
	if a.Err != nil || a.By != "link" {
		t.Fatalf("%+v", a)
	}
	if err := b.Redeem(a.ID, r); err != nil {
		t.Error(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		if status, _ := do(method, link, "application/json", `{"choice":"once"}`); status != http.StatusGone {
			t.Errorf("used again with %s: %d", method, status)
		}
	}
	client.CloseIdleConnections()
}

// browserOrigin is the Origin header of a form that a page of this origin sends to its own address, by the Fetch standard's
// "append a request Origin header".
func browserOrigin(policy, origin string) string {
	if policy == "no-referrer" {
		return "null"
	}
	return origin
}

func TestABrowserMaySubmitThePageOfALink(t *testing.T) {
	b := newBroker(t)
	front := httptest.NewServer(frontend.NewGate(nil, nil).Public(b.Links()))
	defer front.Close()
	out := make(chan approval.Answer, 1)
	events, stop := b.Watch()
	defer stop()
	go func() { out <- b.Ask(t.Context(), ask(request()))[0] }()
	<-events
	link, err := b.Link(front.URL, &b.List()[0])
	if err != nil {
		t.Fatal(err)
	}
	page, err := front.Client().Get(link)
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	form, err := http.NewRequestWithContext(t.Context(), http.MethodPost, link, strings.NewReader("choice=once"))
	if err != nil {
		t.Fatal(err)
	}
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	form.Header.Set("Origin", browserOrigin(page.Header.Get("Referrer-Policy"), front.URL))
	answer, err := front.Client().Do(form)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("the form of a page with the policy %q: %s", page.Header.Get("Referrer-Policy"), answer.Status)
	}
	if a := <-out; a.Err != nil {
		t.Errorf("%+v", a)
	}
	front.Client().CloseIdleConnections()
}

func TestWebhookAnswersAreOnlyWaitedForAsLongAsTheRequestIsOpen(t *testing.T) {
	c, err := approval.NewWebhook(&webhook.Options{Secret: secret, URL: receiver(t, func(http.ResponseWriter, string, approval.WebhookBody) {})},
		func(*approval.Pending) (string, error) { return "http://127.0.0.1/", nil })
	if err != nil {
		t.Fatal(err)
	}
	defer c.(io.Closer).Close()
	b := newBroker(t, func(o *approval.Options) { o.Channels, o.Timeout = []approval.Channel{c}, 50*time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if a := b.Ask(ctx, ask(request()))[0]; code(a.Err) != tool.ApprovalTimeout {
		t.Errorf("%+v", a)
	}
}
