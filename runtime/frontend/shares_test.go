package frontend_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/runtime/frontend"
)

func TestOneAgentTakesHalfAndEveryLaterOneFindsRoom(t *testing.T) {
	s := frontend.Shares{Max: 1000}
	taken := func(agent string) (n int64) {
		for s.Take(agent, 1) {
			n++
		}
		return n
	}
	for i, want := range []int64{500, 250, 125, 63, 31} {
		if got := taken(string(rune('a' + i))); got != want {
			t.Errorf("greedy agent %d got %d places, want %d", i+1, got, want)
		}
	}
	for max, want := range map[int64]int64{0: 0, 1: 1, 2: 1, 3: 2} {
		s = frontend.Shares{Max: max}
		if got := taken("a"); got != want {
			t.Errorf("of %d places one agent got %d, want %d", max, got, want)
		}
	}
}

func TestGreedyAgentsEndUpWithTheSame(t *testing.T) {
	s := frontend.Shares{Max: 1000}
	agents := []string{"a", "b", "c"}
	held := map[string]int{}
	for round := range 2000 { // everybody gives one back and takes as many as there are
		agent := agents[round%len(agents)]
		if held[agent] > 0 {
			s.Leave(agent, 1)
			held[agent]--
		}
		for s.Take(agent, 1) {
			held[agent]++
		}
	}
	for _, agent := range agents {
		if held[agent] < 240 || held[agent] > 260 { // a quarter each, and a quarter free
			t.Errorf("shares: %v", held)
			break
		}
	}
}

func TestWhatIsGivenBackCanBeTakenAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := frontend.Shares{Max: rapid.Int64Range(1, 50).Draw(t, "max")}
		held, all := map[string]int64{}, int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				agent, n := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"), rapid.Int64Range(1, 10).Draw(t, "n")
				if got, want := s.Take(agent, n), held[agent]+n <= s.Max-all; got != want {
					t.Fatalf("taking %d: %v", n, got)
				} else if got {
					held[agent] += n
					all += n
				}
			},
			"leave": func(t *rapid.T) {
				agent := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent")
				if held[agent] > 0 {
					n := rapid.Int64Range(1, held[agent]).Draw(t, "n")
					s.Leave(agent, n)
					held[agent] -= n
					all -= n
				}
			},
		})
	})
}
