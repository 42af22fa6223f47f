package config

// Log says what the daemon writes about itself.
type Log struct {
	// Level is the least severe level that is written.
	Level string `key:"level" default:"info" in:"trace|debug|info|warn|error"`
	// Format is text for people or json for programs, one object a line.
	Format string `key:"format" default:"text" in:"text|json"`
	// File receives the log instead of standard error.
	File string `key:"file" path:"true"`
}
