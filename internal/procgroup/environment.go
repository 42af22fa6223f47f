package procgroup

import (
	"slices"
)

// inherited are the variables that every program gets from the daemon: without them common programs do not work.
var inherited = []string{"PATH", "HOME", "LANG", "TZ"}

// Environment builds a program's complete environment, sorted: PATH, HOME, LANG and TZ and the names in pass as far as
// lookup knows them (usually [os.LookupEnv]), then set, which wins.
func Environment(pass []string, set map[string]string, lookup func(string) (string, bool)) []string {
	vars := map[string]string{}
	for _, name := range slices.Concat(inherited, pass) {
		if value, ok := lookup(name); ok {
			vars[name] = value
		}
	}
	for name, value := range set {
		vars[name] = value
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}
