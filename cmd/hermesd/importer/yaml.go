package importer

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

func decodeYAML(data []byte) (value, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return value{}, fmt.Errorf("it is not YAML: %w", err)
	}
	if len(root.Content) == 0 {
		return value{kind: null}, nil
	}
	budget := maxNodes
	return fromYAML(root.Content[0], &budget)
}

// maxNodes bounds what a YAML file can become: aliases multiply.
const maxNodes = 100_000

func fromYAML(n *yaml.Node, budget *int) (value, error) {
	if *budget--; *budget < 0 {
		return value{}, fmt.Errorf("the YAML has more than %d values", maxNodes)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return fromYAML(n.Alias, budget)
	case yaml.SequenceNode:
		v := value{kind: array}
		for _, c := range n.Content {
			item, err := fromYAML(c, budget)
			if err != nil {
				return value{}, err
			}
			v.items = append(v.items, item)
		}
		return v, nil
	case yaml.MappingNode:
		var own, merged fields
		for i := 0; i+1 < len(n.Content); i += 2 {
			item, err := fromYAML(n.Content[i+1], budget)
			if err != nil {
				return value{}, err
			}
			if n.Content[i].ShortTag() != "!!merge" {
				own.set(n.Content[i].Value, item)
			} else if err := merge(&merged, item); err != nil {
				return value{}, fmt.Errorf("line %d: %w", n.Content[i].Line, err)
			}
		}
		for _, m := range own.list {
			merged.set(m.name, m.value)
		}
		return value{kind: object, members: merged.list}, nil
	}
	v := value{kind: str, text: n.Value}
	switch n.ShortTag() {
	case "!!null":
		v.kind, v.text = null, ""
	case "!!bool":
		v.kind = boolean
	case "!!int", "!!float":
		v.kind = number
	}
	return v, nil
}

// merge adds what "<<" names: an object, or several of which the first that has a member counts (YAML 1.1, type merge).
func merge(into *fields, v value) error {
	if v.kind == object {
		v = value{kind: array, items: []value{v}}
	}
	if v.kind != array {
		return errors.New("<< takes an object, or a list of objects")
	}
	for _, item := range v.items {
		if item.kind != object {
			return errors.New("<< takes an object, or a list of objects")
		}
		for _, m := range item.members {
			if _, known := into.at[m.name]; !known {
				into.set(m.name, m.value)
			}
		}
	}
	return nil
}
