package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
)

// A task asks its client by what tasks/get says of it, and is answered by tasks/update: several things at a time, each by
// itself.

// taskInput is one thing that a task asks its client for.
type taskInput struct {
	id       string // the asker's
	request  sdk.InputRequest
	question *taskQuestion
}

// taskQuestion is what was asked for together.
type taskQuestion struct {
	left  int
	given sdk.InputResponseMap
	done  chan struct{} // closed when nothing is left
}

// ask puts requests to the client of a task and waits for all answers.
func (s *tasks) ask(ctx context.Context, t *task, requests sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	q := &taskQuestion{left: len(requests), given: sdk.InputResponseMap{}, done: make(chan struct{})}
	var keys []string
	s.mu.Lock()
	if !t.final() {
		for id, request := range requests {
			t.asked++ // no key stands for two things in the life of a task
			key := fmt.Sprintf("%d-%s", t.asked, id)
			t.open[key] = &taskInput{id, request, q}
			keys = append(keys, key)
		}
		t.updated = time.Now()
	}
	s.mu.Unlock()
	select {
	case <-q.done:
		return q.given, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(t.open, key)
	}
	return nil, context.Cause(ctx)
}

// answer hands an agent's answers to its task. Those that nothing asks for are left aside, as SEP-2663 has it.
func (s *tasks) answer(agent, id string, responses map[string]json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(agent, id)
	if err != nil {
		return err
	}
	given := sdk.InputResponseMap{}
	for key, raw := range responses {
		if in := t.open[key]; in != nil {
			if given[key], err = readInput(in.request, raw); err != nil {
				return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("inputResponses[%q]: %v", frontend.Clip(key, 100), err)}
			}
		}
	}
	for key, response := range given {
		in := t.open[key]
		delete(t.open, key)
		in.question.given[in.id] = response
		if in.question.left--; in.question.left == 0 {
			close(in.question.done)
		}
		t.updated = time.Now()
	}
	return nil
}

// readInput is a client's answer to what it was asked for.
func readInput(asked sdk.InputRequest, raw json.RawMessage) (sdk.InputResponse, error) {
	const key = "answer"
	object, err := json.Marshal(map[string]json.RawMessage{key: raw})
	if err != nil {
		return nil, err
	}
	var answers sdk.InputResponseMap
	if err := json.Unmarshal(object, &answers); err != nil {
		return nil, err
	}
	fits := false
	switch r := answers[key].(type) {
	case *sdk.ElicitResult:
		_, fits = asked.(*sdk.ElicitParams)
		fits = fits && (r.Action == "accept" || r.Action == "decline" || r.Action == "cancel")
	case *sdk.CreateMessageWithToolsResult:
		_, fits = asked.(*sdk.CreateMessageWithToolsParams)
	case *sdk.ListRootsResult:
		_, fits = asked.(*sdk.ListRootsParams)
	}
	if !fits {
		return nil, errors.New("it is no answer to what was asked for under this key; look at the task's inputRequests")
	}
	return answers[key], nil
}
