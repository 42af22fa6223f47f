package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const key = "0123456789abcdef"

// TestMain lets this test binary be the plugin, as a person would start it by hand.
func TestMain(m *testing.M) {
	if os.Getenv("WEATHER_TEST_PLUGIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run invokes the tool with a configuration and, unless bare, a key.
func run(t *testing.T, config, args string, bare bool) (stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "invoke", "--config", config, "weather", args)
	cmd.Env = []string{"WEATHER_TEST_PLUGIN=1"}
	if !bare {
		cmd.Env = append(cmd.Env, keyName+"="+key)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && errs.Len() == 0 {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String()), errs.String()
}

// service is the API as far as the plugin needs it.
func service(t *testing.T, handle http.HandlerFunc) (config string) {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return fmt.Sprintf(`{"base_url":%q}`, s.URL)
}

func TestSampleDataIsTheSameEveryTimeAndInBothUnits(t *testing.T) {
	for args, want := range map[string]string{
		`{"city":"Oslo"}`:                      `{"city":"Oslo","temperature":28,"unit":"°C","conditions":"clear sky"}`,
		`{"city":"Oslo","units":"metric"}`:     `{"city":"Oslo","temperature":28,"unit":"°C","conditions":"clear sky"}`,
		`{"city":"Oslo","units":"imperial"}`:   `{"city":"Oslo","temperature":82.4,"unit":"°F","conditions":"clear sky"}`,
		`{"city":" oslo ","units":"imperial"}`: `{"city":" oslo ","temperature":82.4,"unit":"°F","conditions":"clear sky"}`,
	} {
		if out, errs := run(t, `{}`, args, false); out != want {
			t.Errorf("%s = %q, %q", args, out, errs)
		}
	}
}

func TestWithoutAKeyTheToolSaysWhatTheOperatorMustDo(t *testing.T) {
	if _, errs := run(t, `{}`, `{"city":"Oslo"}`, true); !strings.Contains(errs, "not_available") || !strings.Contains(errs, "pass_env") {
		t.Errorf("error = %q", errs)
	}
}

func TestTheServiceIsAskedWithCityUnitsAndKey(t *testing.T) {
	config := service(t, func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.URL.Path != "/data/2.5/weather" || q.Get("q") != "São Paulo,BR" || q.Get("units") != "imperial" || q.Get("appid") != key {
			t.Errorf("request = %s", r.URL)
		}
		fmt.Fprint(w, `{"main":{"temp":71.6},"weather":[{"description":"light rain"}]}`)
	})
	out, errs := run(t, config, `{"city":"São Paulo,BR","units":"imperial"}`, false)
	if want := `{"city":"São Paulo,BR","temperature":71.6,"unit":"°F","conditions":"light rain"}`; out != want {
		t.Errorf("answer = %q, %q", out, errs)
	}
}

func TestEveryFaultOfTheServiceSaysWhoHasToAct(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		want   []string
	}{
		"an unknown city":        {answer(404, ""), []string{"invalid_arguments", `no city "Atlantis"`, "spelling"}},
		"a refused key":          {answer(401, ""), []string{"not_available", keyName}},
		"too many calls":         {answer(429, ""), []string{"rate_limited", "in a minute"}},
		"a fault of its own":     {answer(500, "stack trace"), []string{"downstream_failed", "500 Internal Server Error", "stack trace"}},
		"no JSON":                {answer(200, "<html>"), []string{"downstream_failed", "cannot be read"}},
		"JSON without a reading": {answer(200, "{}"), []string{"downstream_failed", "no temperature"}},
		"a broken connection": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		}, []string{"downstream_failed", "broke off"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := run(t, service(t, c.handle), `{"city":"Atlantis"}`, false)
			for _, w := range c.want {
				if !strings.Contains(errs, w) {
					t.Errorf("error %q lacks %q", errs, w)
				}
			}
		})
	}
}

func TestTheKeyIsNeverShown(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close() // nobody listens there now
	_, errs := run(t, fmt.Sprintf(`{"base_url":%q}`, s.URL), `{"city":"Oslo"}`, false)
	if !strings.Contains(errs, "downstream_failed") || !strings.Contains(errs, "appid=[redacted]") || strings.Contains(errs, key) {
		t.Errorf("error = %q", errs)
	}
}

func TestAWrongConfigurationNamesItsKey(t *testing.T) {
	for config, want := range map[string]string{
		`{"base_url":"weather.example"}`: "/base_url",
		`{"base_url":"ftp://x"}`:         "/base_url",
		`{"timeout":0}`:                  "/timeout",
		`{"key":"x"}`:                    `"key"`,
	} {
		if _, errs := run(t, config, `{"city":"Oslo"}`, false); !strings.Contains(errs, "configuration") || !strings.Contains(errs, want) {
			t.Errorf("%s: %q", config, errs)
		}
	}
}
