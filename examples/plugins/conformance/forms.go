package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hermesd/hermesd/pluginsdk"
)

type message struct {
	Message string `json:"message" jsonschema:"The message to show the user"`
}

func elicitation(ctx context.Context, in message) (*pluginsdk.Result, error) {
	a, err := ask(ctx, in.Message, userForm)
	if err != nil {
		return nil, err
	}
	return pluginsdk.TextResult("User response: action=%s, content=%s", a.Action, content(a)), nil
}

// form makes a tool without arguments that shows a form.
func form(schema json.RawMessage) func(context.Context, none) (*pluginsdk.Result, error) {
	return func(ctx context.Context, _ none) (*pluginsdk.Result, error) {
		a, err := ask(ctx, "Please fill in the form.", schema)
		if err != nil {
			return nil, err
		}
		return pluginsdk.TextResult("Elicitation completed: action=%s, content=%s", a.Action, content(a)), nil
	}
}

func ask(ctx context.Context, text string, schema json.RawMessage) (pluginsdk.Answer, error) {
	a, err := pluginsdk.AskHuman(ctx, pluginsdk.Question{Message: text, Schema: schema})
	if err != nil {
		return a, fmt.Errorf("elicitation: %w", err)
	}
	return a, nil
}

func content(a pluginsdk.Answer) string {
	if len(a.Content) == 0 {
		return "{}"
	}
	return string(a.Content)
}

// The forms, as the suite wants them.
var (
	userForm = json.RawMessage(`{
		"type": "object",
		"properties": {
			"username": {"type": "string", "description": "User's response"},
			"email": {"type": "string", "description": "User's email address"}
		},
		"required": ["username", "email"]
	}`)

	// SEP-1034
	defaultsForm = json.RawMessage(`{
		"type": "object",
		"properties": {
			"name": {"type": "string", "description": "User name", "default": "John Doe"},
			"age": {"type": "integer", "description": "User age", "default": 30},
			"score": {"type": "number", "description": "User score", "default": 95.5},
			"status": {"type": "string", "description": "User status", "enum": ["active", "inactive", "pending"], "default": "active"},
			"verified": {"type": "boolean", "description": "Verification status", "default": true}
		},
		"required": []
	}`)

	// SEP-1330
	enumsForm = json.RawMessage(`{
		"type": "object",
		"properties": {
			"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
			"titledSingle": {"type": "string", "oneOf": [
				{"const": "value1", "title": "First Option"},
				{"const": "value2", "title": "Second Option"},
				{"const": "value3", "title": "Third Option"}
			]},
			"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
			"untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
			"titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [
				{"const": "value1", "title": "First Choice"},
				{"const": "value2", "title": "Second Choice"},
				{"const": "value3", "title": "Third Choice"}
			]}}
		},
		"required": []
	}`)
)

// schema2020 holds keywords that JSON Schema has only since 2020-12 (SEP-1613); it must reach agents byte for byte.
var schema2020 = json.RawMessage(`{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {
		"address": {
			"type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
		}
	},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"}
	},
	"additionalProperties": false
}`)
