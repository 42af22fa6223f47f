package embed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
)

// bytesPerNumber is generous for one number of a vector in JSON.
const bytesPerNumber = 32

// endpoint speaks to the service.
type endpoint struct {
	url, model, key string
	client          *http.Client
}

func newEndpoint(opts *Options) *endpoint {
	transport := opts.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = maxAtOnce
		transport = own
	}
	return &endpoint{url: opts.URL, model: opts.Model, key: opts.APIKey, client: &http.Client{
		Transport: transport,
		// The key goes to the configured address and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (e *endpoint) close() { e.client.CloseIdleConnections() }

// embed returns a vector of length one for each text. All have the same number of dimensions.
func (e *endpoint) embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.model, "input": texts})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	limit := int64(len(texts))*maxDimension*bytesPerNumber + 1<<16
	answer, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, excerpt(answer))
	}
	return decode(answer, len(texts))
}

// excerpt is the beginning of an answer that is an error, on one line.
func excerpt(answer []byte) string {
	const most = 200
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(answer[:min(len(answer), most)]), "")), " ")
}

// decode reads an answer to n texts.
func decode(answer []byte, n int) ([][]float32, error) {
	var a struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("the answer is no list of embeddings: %w", err)
	}
	if len(a.Data) != n {
		return nil, fmt.Errorf("%d embeddings for %d texts", len(a.Data), n)
	}
	vectors := make([][]float32, n)
	for i, d := range a.Data {
		place := *cmp.Or(d.Index, &i)
		if place < 0 || place >= n || vectors[place] != nil {
			return nil, fmt.Errorf("embedding %d has the index %d, of %d texts", i, place, n)
		}
		if len(d.Embedding) == 0 || len(d.Embedding) > maxDimension || len(d.Embedding) != len(a.Data[0].Embedding) {
			return nil, fmt.Errorf("embedding %d has %d numbers; from 1 to %d, and the same for all, are expected", i, len(d.Embedding), maxDimension)
		}
		if !normalize(d.Embedding) {
			return nil, fmt.Errorf("embedding %d has no direction", i)
		}
		vectors[place] = d.Embedding
	}
	return vectors, nil
}

// normalize gives v the length one; false if it has none.
func normalize(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return true
}

// vector is one of length one with a byte for each number: a quarter of the memory, and the order by nearness is hardly
// another.
type vector struct {
	values []int8
	scale  float32 // of a value
}

func compress(v []float32) *vector {
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	c := &vector{values: make([]int8, len(v)), scale: most / math.MaxInt8}
	for i, x := range v {
		c.values[i] = int8(math.Round(float64(x / c.scale)))
	}
	return c
}

func (v *vector) dot(q []float32) float64 {
	sum := float32(0)
	for i, x := range v.values {
		sum += float32(x) * q[i]
	}
	return float64(sum * v.scale)
}
