package config

import "reflect"

// Keys lists every key and block name.
func Keys() []string {
	var keys []string
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for _, f := range fieldsOf(t) {
			if f.name != "" {
				keys = append(keys, f.name)
			}
			if inner := f.block(); inner != nil {
				walk(inner)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	return keys
}
