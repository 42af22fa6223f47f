package admin

// Along is a session of a client whose streams the daemon has itself, as `hermesd mcp` reads along. One goroutine uses it.
type Along interface {
	// Next is what happened next. It comes late, so that reading along costs little. It ends with [io.EOF] when the daemon ended
	// the session, else with the reason; the streams are the daemon's no more then.
	Next() (Event, error)
	// TakeBack makes the client's streams usable again and returns what was on its way when the session ended. It fails if it
	// was ended from here.
	TakeBack() (*Left, error)
	// Close ends the session at once.
	Close() error
}

// Event is what a daemon did with a client's streams. The text is overwritten by the next one.
type Event struct {
	Kind EventKind
	Text []byte // pieces of lines, as they came
}

// EventKind is a kind of [Event].
type EventKind byte

const (
	Heard  EventKind = frameHeard // it read this from the client and is going to act on it; nothing is the end
	Said   EventKind = frameSaid  // it wrote this to the client, or what was left of that is in Left
	Passed EventKind = frameData  // this is to be written to the client: the daemon does it no more
)

// Left is what was on its way between a client and its daemon.
type Left struct {
	Unheard []byte // was read from the client, and is to be read next: nothing was done with it
	Unsaid  []byte // is to be written to the client first; there was an [Event] for it
	Unknown []byte // is to be written after that; there was no Event for it
}
