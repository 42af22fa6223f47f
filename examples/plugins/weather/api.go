package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

// api asks OpenWeather's "current weather data" interface.
type api struct {
	base   *url.URL
	client *http.Client
}

func newAPI(base string, timeout time.Duration) (*api, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no http or https address", base)
	}
	return &api{base: u, client: &http.Client{Timeout: timeout}}, nil
}

func (a *api) current(ctx context.Context, key, city, units string) (float64, string, error) {
	u := a.base.JoinPath("data/2.5/weather")
	u.RawQuery = url.Values{"q": {city}, "units": {units}, "appid": {key}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, "", ctx.Err()
		}
		return 0, "", pluginsdk.Errorf(pluginsdk.DownstreamFailed, "the weather service cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, "", pluginsdk.Errorf(pluginsdk.DownstreamFailed, "the weather service broke off its answer: %w", err)
	}
	if err := statusError(resp, city, body); err != nil {
		return 0, "", err
	}
	return readAnswer(body)
}

// statusError says whose fault a status is.
func statusError(resp *http.Response, city string, body []byte) error {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound:
		return pluginsdk.InvalidArgument("/city", "the weather service knows no city %q; check the spelling or add the country, as in \"Paris,FR\"", city)
	case code == http.StatusUnauthorized:
		return pluginsdk.Errorf(pluginsdk.NotAvailable, "the weather service refuses the key in %s; the operator must give a valid one", keyName)
	case code == http.StatusTooManyRequests:
		return pluginsdk.Errorf(pluginsdk.RateLimited, "the weather service allows no more calls for now; try again in a minute")
	default:
		return pluginsdk.Errorf(pluginsdk.DownstreamFailed, "the weather service answered %s", resp.Status).WithDetail("%.500s", body)
	}
}

func readAnswer(body []byte) (float64, string, error) {
	var answer struct {
		Main *struct {
			Temp float64 `json:"temp"`
		} `json:"main"`
		Weather []struct {
			Description string `json:"description"`
		} `json:"weather"`
	}
	err := json.Unmarshal(body, &answer)
	if err == nil && answer.Main == nil {
		err = errors.New("it holds no temperature")
	}
	if err != nil {
		return 0, "", pluginsdk.Errorf(pluginsdk.DownstreamFailed, "the weather service's answer cannot be read: %w", err)
	}
	conditions := "unknown"
	if len(answer.Weather) > 0 {
		conditions = answer.Weather[0].Description
	}
	return answer.Main.Temp, conditions, nil
}
