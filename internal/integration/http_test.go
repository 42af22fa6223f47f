package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	return body(t, response, err)
}

func post(t *testing.T, url, content string) string {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(content))
	return body(t, response, err)
}

func body(t *testing.T, response *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
