package config

import "time"

// Audit says how calls are recorded. Every call is.
type Audit struct {
	// Sync is what a record survives before its call runs: "power" (loss of power) or "process" (death of the daemon only,
	// faster).
	Sync string `key:"sync" default:"power" in:"power|process"`
	// Arguments records the arguments of calls, secrets masked, besides their digest.
	Arguments bool `key:"arguments" default:"false"`
	// Keep prunes records that are older than this; 0 keeps all.
	Keep time.Duration `key:"keep" default:"0s" min:"0s" max:"36500d"`
	// MaxSize prunes the oldest records when the log is larger than this; 0 is no limit.
	MaxSize Size `key:"max_size" default:"0B" min:"0B" max:"1TiB"`
	// OnFailure is "block" (no record, no call) or "allow" (the call runs, and the log says that its record is missing).
	OnFailure string `key:"on_failure" default:"block" in:"block|allow"`
}

// Embeddings is an endpoint of the OpenAI shape (POST URL with model and input) that search may use besides its words.
type Embeddings struct {
	// URL is the endpoint: https, or http on loopback.
	URL string `key:"url" required:"true"`
	// Model is the model's name there.
	Model string `key:"model" required:"true"`
	// APIKey is sent as a bearer token.
	APIKey string `key:"api_key" secret:"true"`
	// Timeout is how long a search waits for the endpoint; after it the search goes on by words alone.
	Timeout time.Duration `key:"timeout" default:"300ms" min:"10ms" max:"300ms"`
}
