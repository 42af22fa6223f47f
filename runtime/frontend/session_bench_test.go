package frontend_test

import (
	"fmt"
	"testing"

	"github.com/hermesd/hermesd/runtime/frontend"
)

func BenchmarkManySessions(b *testing.B) {
	b.Run("a new one in the place of the oldest", func(b *testing.B) {
		s := &frontend.Sessions{}
		for i := range 10_000 {
			s.ID("desk", fmt.Sprint(i), "")
		}
		i := 10_000
		for b.Loop() {
			s.ID("desk", fmt.Sprint(i), "")
			i++
		}
	})
	b.Run("one that is known", func(b *testing.B) {
		s := &frontend.Sessions{}
		for i := range 10_000 {
			s.ID("desk", fmt.Sprint(i), "")
		}
		for b.Loop() {
			s.ID("desk", "77", "")
		}
	})
	b.Run("a new client that names none", func(b *testing.B) {
		s := &frontend.Sessions{}
		for i := range 10_000 {
			s.ID("desk", "", fmt.Sprint(i))
		}
		i := 10_000
		for b.Loop() {
			s.ID("desk", "", fmt.Sprint(i))
			i++
		}
	})
	b.Run("a new one and its end", func(b *testing.B) {
		s := &frontend.Sessions{}
		for i := range 9_999 {
			s.ID("desk", fmt.Sprint(i), "")
		}
		for b.Loop() {
			s.ID("desk", "new", "")
			s.End("desk", "new")
		}
	})
}
