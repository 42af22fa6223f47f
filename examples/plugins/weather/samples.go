package main

import (
	"context"
	"hash/fnv"
	"math"
	"strings"
)

// samples are made-up weather that is always the same for a city.
type samples struct{}

func (samples) current(_ context.Context, _, city, units string) (float64, string, error) {
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(strings.TrimSpace(city))))
	seed := h.Sum32()
	conditions := []string{"clear sky", "few clouds", "light rain", "snow", "mist"}
	celsius := float64(seed%400)/10 - 5 // -5.0 to 34.9
	if units == "imperial" {
		return math.Round((celsius*9/5+32)*10) / 10, conditions[seed%5], nil
	}
	return celsius, conditions[seed%5], nil
}
