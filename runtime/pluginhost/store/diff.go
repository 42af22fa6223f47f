package store

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Difference is one field in which two definitions differ. Before or After is "" where the field was not there.
type Difference struct {
	Field  string `json:"field"` // such as "description" or "input_schema.properties.path.description"
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// maxDifferences bounds a list of differences: beyond it nobody reads them one by one.
const maxDifferences = 200

// Diff lists the fields in which after differs from before, sorted by field.
func Diff(before, after *Definition) ([]Difference, error) {
	old, err := fields(before)
	if err != nil {
		return nil, err
	}
	now, err := fields(after)
	if err != nil {
		return nil, err
	}
	var list []Difference
	names := maps.Clone(old)
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if old[name] == now[name] {
			continue
		}
		if len(list) == maxDifferences {
			return append(list, Difference{Field: "…", After: fmt.Sprintf("more than %d fields differ", maxDifferences)}), nil
		}
		list = append(list, Difference{Field: name, Before: old[name], After: now[name]})
	}
	return list, nil
}

// fields takes a definition apart: each leaf under its path.
func fields(d *Definition) (map[string]string, error) {
	flat := map[string]string{}
	if d == nil {
		return flat, nil
	}
	raw, err := marshal(d)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	flatten("", value, flat)
	return flat, nil
}

func flatten(path string, value any, into map[string]string) {
	join := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			flatten(join(key), one, into)
		}
		if len(v) == 0 && path != "" {
			into[path] = "{}"
		}
	case []any:
		for n, one := range v {
			flatten(join(strconv.Itoa(n)), one, into)
		}
		if len(v) == 0 {
			into[path] = "[]"
		}
	case string:
		into[path] = strconv.Quote(v) // what cannot be seen is written out
	default:
		into[path] = fmt.Sprint(v)
	}
}
