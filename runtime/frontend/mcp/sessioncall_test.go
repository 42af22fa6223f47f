package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/frontend/mcp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// A plain call begins without the SDK. With a parameter behind its Content-Type it is served by the SDK, and the client can
// tell the difference only by what carries the messages.
func TestAPlainCallOfASessionIsAnsweredAsTheSDKAnswersIt(t *testing.T) {
	v, end := visiting(t, mcp.Options{}, providertest.New("t", everyAnswer()...))
	defer end()
	for _, name := range []string{"t_echo", "t_fail", "t_error", "t_structured", "t_image", "t_meta", "t_garbage", "t_none", "t_needs", "t_needy", "t_tells", "tool_search"} {
		for _, id := range []string{`7`, `"a\u0041\n"`, `9007199254740993`, `1.5`} {
			for _, meta := range []string{``, `,"_meta":{"progressToken":"p"}`, `,"_meta":{"progressToken":7,"x":{"y":1}}`} {
				t.Run(fmt.Sprint(name, id, meta), func(t *testing.T) {
					more := `,"arguments":{"queries":["echo"]}` + meta
					got, streamed := v.call(id, name, more).messages()
					want, events := v.call(id, name, more, unusual...).messages()
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("SDK - ours +:\n%s", diff)
					}
					if tells := len(got) > 1; streamed != tells || !events {
						t.Errorf("%d messages, as a stream: %v; by the SDK: %v", len(got), streamed, events)
					}
				})
			}
		}
	}
}

func TestTheLevelOfASessionOverHTTPHoldsForItsCalls(t *testing.T) {
	v, end := visiting(t, mcp.Options{}, providertest.New("t", everyAnswer()...))
	defer end()
	for level, lines := range map[string]int{"debug": 3, "info": 2, "error": 1, "emergency": 0} {
		v.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"` + level + `"}}`).status(http.StatusOK)
		if got, _ := v.call("1", "t_tells", "").messages(); len(got) != lines+1 {
			t.Errorf("%s: %v", level, got)
		}
	}
}

// What is not quite a plain call of a session is the SDK's to judge, and so is its answer.
func TestAnUnusualRequestOfASessionIsTheSDKs(t *testing.T) {
	p := providertest.New("t", core(providertest.Echo("t_echo")))
	v, end := visiting(t, mcp.Options{}, p)
	defer end()
	const plain = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t_echo","arguments":{}}}`
	change := func(old, with string) string { return strings.Replace(plain, old, with, 1) }
	for name, body := range map[string]string{
		"plain":                    plain,
		"no JSON":                  plain[:len(plain)-1],
		"nothing":                  "",
		"a batch":                  "[" + plain + "]",
		"an id of null":            change(`"id":1`, `"id":null`),
		"an id that is an object":  change(`"id":1`, `"id":{}`),
		"no id":                    change(`"id":1,`, ``),
		"JSON-RPC 1.0":             change(`"2.0"`, `"1.0"`),
		"another method":           change("tools/call", "tools/walk"),
		"no name":                  change(`"name":"t_echo",`, ``),
		"a name that is a number":  change(`"t_echo"`, `5`),
		"something said twice":     change(`"arguments":{}`, `"arguments":{},"arguments":{}`),
		"arguments that are none":  change(`"arguments":{}`, `"arguments":null`),
		"arguments that are text":  change(`"arguments":{}`, `"arguments":"x"`),
		"an unknown member":        change(`"arguments":{}`, `"arguments":{},"unknown":1`),
		"a token that is an array": change(`"arguments":{}`, `"_meta":{"progressToken":[1]}`),
		"another version":          change(`"arguments":{}`, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`),
	} {
		answer := func(header ...string) string {
			x := v.post(body, header...)
			messages, _ := x.messagesOrText()
			return fmt.Sprint(x.Code, messages)
		}
		if got, want := answer(), answer(unusual...); got != want {
			t.Errorf("%s: %s, by the SDK %s", name, got, want)
		}
	}
	before := len(p.Calls())
	for name, c := range map[string]struct {
		header []string
		want   int
	}{
		"a client that takes no JSON":   {[]string{"Accept", "text/event-stream"}, 400},
		"a client that takes no events": {[]string{"Accept", "application/json"}, 400},
		"a form":                        {[]string{"Content-Type", "text/plain"}, 415},
		"a stream taken up":             {[]string{"Last-Event-Id", "x_1"}, 400},
		"an unknown version":            {[]string{"Mcp-Protocol-Version", "2001-01-01"}, 400},
		"an unknown session":            {[]string{"Mcp-Session-Id", "x"}, 404},
		"another agent":                 {[]string{"Authorization", "Bearer other-token"}, 404},
	} {
		t.Run(name, func(t *testing.T) { v.post(plain, c.header...).status(c.want) })
	}
	if ran := len(p.Calls()) - before; ran != 0 {
		t.Errorf("%d calls ran", ran)
	}
	v.post(plain, "Mcp-Protocol-Version", "2025-06-18").says(false, "structuredContent")
	v.post(plain, "Hermesd-Running-Call", "x").says(false, "structuredContent")
	v.post(plain, append(unusual, "Hermesd-Running-Call", "x")...).says(true, "structuredContent")
}

// messagesOrText is for answers that may be plain text.
func (x *exchange) messagesOrText() (any, bool) {
	<-x.done
	if strings.HasPrefix(x.Header().Get("Content-Type"), "text/plain") {
		return x.Body.String(), false
	}
	return x.messages()
}

func TestACallOfAnOldClientWithoutASessionIsTheSDKs(t *testing.T) {
	p := providertest.New("t", core(providertest.Echo("t_echo")))
	v, end := visiting(t, mcp.Options{}, p)
	defer end()
	v.header["Mcp-Session-Id"] = ""
	v.call("1", "t_echo", "").says(true, "structuredContent")
}

// A client that waits for its answer has a stream that it can take up again, from a quarter of a second on.
func TestACallThatLastsHasAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, begun, release, _ := hanging("t_hang")
		p := providertest.New("t", hang)
		v, end := visiting(t, mcp.Options{}, p)
		defer end()
		for _, after := range []time.Duration{0, 249 * time.Millisecond, 251 * time.Millisecond, 20 * time.Second} {
			x := v.call("1", "t_hang", "")
			<-begun
			time.Sleep(after)
			release <- struct{}{}
			x.says(after > 250*time.Millisecond, `"done"`)
			if primed := strings.HasPrefix(x.Body.String(), "event: prime\nretry:"); primed != (after > 250*time.Millisecond) {
				t.Errorf("after %v: %s", after, x.Body)
			}
		}
		if ran := len(p.Calls()); ran != 4 {
			t.Errorf("%d calls ran", ran)
		}

		x := v.call("1", "t_hang", "")
		<-begun
		time.Sleep(time.Second)
		x.gone()
		synctest.Wait()
		release <- struct{}{}
		synctest.Wait()
		_, event, _ := strings.Cut(x.Body.String(), "id: ")
		id, _, _ := strings.Cut(event, "\n")
		v.request(http.MethodGet, "", "Last-Event-Id", id).says(true, `"done"`)
	})
}

func TestACallWhoseClientGoesAwayRunsToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, begun, release, ended := hanging("t_hang")
		v, end := visiting(t, mcp.Options{}, providertest.New("t", hang))
		defer end()
		x := v.call("1", "t_hang", "")
		<-begun
		x.gone()
		time.Sleep(time.Second)
		v.call("1", "t_hang", "").status(http.StatusBadRequest) // its id is still in use
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		v.call("1", "t_hang", "").says(false, `"done"`)
	})
}

// What a call says to nobody does not hold it up.
func TestACallWhoseClientHasGoneCanAskNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, release, asked := make(chan struct{}), make(chan struct{}), make(chan error)
		v, end := visiting(t, mcp.Options{}, providertest.New("t", answering("t_ask", func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			close(begun)
			<-release
			req.Host.Log(tool.LogRecord{Level: "error", Data: []byte(`"x"`)})
			req.Host.Progress(tool.Progress{Done: 1})
			_, err := req.Host.Ask(ctx, provider.Question{Message: "sure?"})
			asked <- err
			return nil, err
		})))
		defer end()
		x := v.call("1", "t_ask", `,"_meta":{"progressToken":"p"}`)
		<-begun
		x.gone()
		synctest.Wait()
		at := time.Now()
		close(release)
		if err := <-asked; tool.CodeOf(err) != tool.Unsupported || time.Since(at) > 0 {
			t.Errorf("%v after %v", err, time.Since(at))
		}
	})
}

// A call that is cancelled is answered as the SDK answers it, before its request was handed over and after.
func TestACallOfASessionIsCancelledWhoeverServesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, begun, _, ended := hanging("t_hang")
		v, end := visiting(t, mcp.Options{}, providertest.New("t", hang))
		defer end()
		for _, id := range []string{`7`, `"7"`, `9007199254740993`, `1.5`, `"a\u0041"`} {
			cancelled := func(after time.Duration, header ...string) (string, bool) {
				x := v.call(id, "t_hang", "", header...)
				<-begun
				time.Sleep(after)
				v.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other"}}`).status(http.StatusAccepted)
				v.post(`{"method":"notifications/cancelled","params":{"requestId":` + id + `}}`).status(http.StatusBadRequest)
				synctest.Wait()
				if len(ended) > 0 {
					t.Errorf("%s: cancelled by another's id", id)
				}
				v.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}}`).status(http.StatusAccepted)
				if err := <-ended; err != context.Canceled {
					t.Errorf("%s: the tool's context: %v", id, err)
				}
				messages, streamed := x.messages()
				return fmt.Sprint(messages), streamed
			}
			bySDK, _ := cancelled(0, unusual...)
			quiet, streamed := cancelled(0)
			handed, events := cancelled(time.Second)
			if quiet != bySDK || handed != bySDK || streamed || !events {
				t.Errorf("%s: the SDK answers %s\nbefore the hand-over %s\nafter it %s", id, bySDK, quiet, handed)
			}
		}
	})
}

func TestAnIDThatIsInUseIsRefusedWhoeverHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, begun, release, _ := hanging("t_hang")
		p := providertest.New("t", hang)
		v, end := visiting(t, mcp.Options{}, p)
		defer end()
		ran := 0
		for holder, hold := range map[string]struct {
			header []string
			after  time.Duration
			gone   bool
		}{
			"a call that began without the SDK": {},
			"one that was handed over":          {after: time.Second},
			"one whose client has gone":         {gone: true},
			"one that was handed over before":   {after: time.Second, gone: true},
			"the SDK's":                         {header: unusual},
			"the SDK's, its client gone":        {header: unusual, gone: true, after: time.Second},
		} {
			for _, id := range []string{`5`, `"five"`, `9007199254740993`} {
				x := v.call(id, "t_hang", "", hold.header...)
				<-begun
				ran++
				time.Sleep(hold.after)
				if hold.gone {
					x.gone()
					synctest.Wait()
				}
				for other, again := range map[string]*exchange{
					"a plain call": v.call(id, "t_hang", ""), "the SDK's": v.call(id, "t_hang", "", unusual...),
					"a ping": v.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`),
				} {
					again.status(http.StatusBadRequest)
					if want := "duplicate in-flight request ID " + strings.Trim(id, `"`); !strings.Contains(again.Body.String(), want) || !strings.Contains(again.Body.String(), `"id":`+id) {
						t.Errorf("%s, then %s: %s", holder, other, again.Body)
					}
				}
				release <- struct{}{}
				<-x.done
				synctest.Wait()
				for range 2 { // it is free again
					v.post(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`).says(true, `"result"`)
				}
			}
		}
		if len(p.Calls()) != ran {
			t.Errorf("%d calls ran, not %d", len(p.Calls()), ran)
		}
	})
}

func TestTheEndOfASessionEndsItsCallsWhoeverServesThem(t *testing.T) {
	for name, stop := range map[string]func(*visit){
		"DELETE": func(v *visit) { v.request(http.MethodDelete, "").status(http.StatusNoContent) },
		"the front end closes": func(v *visit) {
			if err := v.server.Close(v.t.Context()); err != nil {
				v.t.Error(err)
			}
		},
		"the agent is no more": func(v *visit) { v.world.Agents.Remove("desk"); v.server.Refresh() },
	} {
		for _, after := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hang, begun, _, ended := hanging("t_hang")
					v, end := visiting(t, mcp.Options{}, providertest.New("t", hang))
					defer end()
					x, abandoned := v.call("1", "t_hang", ""), v.call("2", "t_hang", "")
					<-begun
					<-begun
					time.Sleep(after)
					abandoned.gone()
					synctest.Wait()
					at := time.Now()
					stop(v)
					for range 2 {
						if err := <-ended; err != context.Canceled || time.Since(at) > 0 {
							t.Errorf("%v after %v", err, time.Since(at))
						}
					}
					if name == "DELETE" || after == 0 {
						x.says(after > 0, `"done"`)
					}
					<-x.done
				})
			})
		}
	}
}

// The SDK, which ends sessions that are not used, hears of one that is.
func TestASessionThatIsUsedDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, end := visiting(t, mcp.Options{SessionIdle: time.Hour}, providertest.New("t", core(providertest.Echo("t_echo"))))
		defer end()
		bySDK := 0
		for i := range 100 {
			for _, pause := range []time.Duration{time.Minute, time.Duration(i) * 36 * time.Second} { // up to 59 minutes and 24 seconds
				time.Sleep(pause)
				x := v.call("1", "t_echo", "")
				if x.status(http.StatusOK); strings.HasPrefix(x.Body.String(), "event:") {
					bySDK++
				}
			}
		}
		if bySDK < 70 || bySDK > 110 {
			t.Errorf("%d of 200 calls went to the SDK", bySDK)
		}
		time.Sleep(75 * time.Minute)
		synctest.Wait()
		v.call("1", "t_echo", "").status(http.StatusNotFound)
	})
}

// Whatever happens meanwhile, a call runs once, and its client gets one answer.
func TestManyCallsOfASessionRunOnceEach(t *testing.T) {
	var ran atomic.Int64
	lasts := answering("t_lasts", func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
		ran.Add(1)
		var how struct{ Tells int }
		if err := json.Unmarshal(req.Call.Arguments, &how); err != nil {
			return nil, err
		}
		for i := range how.Tells {
			req.Host.Progress(tool.Progress{Done: float64(i)})
		}
		return tool.TextResult("done"), ctx.Err()
	})
	v, end := visiting(t, mcp.Options{}, providertest.New("t", lasts))
	defer end()
	const calls = 300
	all := make([]*exchange, calls)
	for i := range all {
		all[i] = v.call(fmt.Sprint(i+1), "t_lasts", fmt.Sprintf(`,"arguments":{"tells":%d},"_meta":{"progressToken":%d}`, i%4, i+1))
		switch i % 10 {
		case 3, 7:
			v.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i+1))
		case 5, 8:
			all[i].gone()
		}
	}
	for i, x := range all {
		<-x.done
		if i%10 == 5 || i%10 == 8 {
			continue
		}
		messages, _ := x.messages()
		cancelled := i%10 == 3 || i%10 == 7 // the SDK may answer with an error then
		if last := messages[len(messages)-1]; last["id"] != float64(i+1) || !cancelled && last["result"] == nil {
			t.Errorf("call %d: %v", i+1, messages)
		}
		if told := len(messages) - 1; !cancelled && told != i%4 {
			t.Errorf("call %d told %d times, not %d", i+1, told, i%4)
		}
	}
	v.request(http.MethodDelete, "").status(http.StatusNoContent)
	if n := ran.Load(); n > calls || n < calls/2 {
		t.Errorf("%d calls ran", n)
	}
}

// A question that is open ends with its call, whoever began that.
func TestACallOfASessionIsCancelledWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, end := visiting(t, mcp.Options{}, providertest.New("t", everyAnswer()...))
		defer end()
		asked := func(header ...string) []map[string]any {
			at := time.Now()
			x := v.call("7", "t_ask", "", header...)
			synctest.Wait()
			v.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`).status(http.StatusAccepted)
			messages, _ := x.messages()
			if took := time.Since(at); took > 0 {
				t.Errorf("it took %v", took)
			}
			for _, m := range messages {
				if m["method"] != nil { // asked of the client, under an id of the SDK's
					delete(m, "id")
				}
			}
			// That the question is cancelled the SDK says beside everything else, if it gets to it.
			return slices.DeleteFunc(messages, func(m map[string]any) bool { return m["method"] == "notifications/cancelled" })
		}
		got, want := asked(), asked(unusual...)
		if diff := cmp.Diff(want, got); diff != "" || len(got) < 2 || got[0]["method"] != "elicitation/create" {
			t.Errorf("got %v; SDK - ours +:\n%s", got, diff)
		}
	})
}
