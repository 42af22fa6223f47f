package config

import (
	"flag"
	"reflect"
)

// Update is the flag that all tests of this folder share.
var Update = flag.Bool("update", false, "write what the tests find into testdata and docs")

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
