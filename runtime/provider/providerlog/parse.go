package providerlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// parse reads a line of hclog's JSON form; any other line is its own text. The text is not clean yet, the fields are.
func (l *Log) parse(line []byte) (slog.Level, string, []Field) {
	text := string(line)
	if !bytes.HasPrefix(line, []byte("{")) {
		return slog.LevelInfo, text, nil
	}
	var entry map[string]any
	if json.Unmarshal(line, &entry) != nil {
		return slog.LevelInfo, text, nil
	}
	message, ok := entry["@message"].(string)
	if !ok {
		return slog.LevelInfo, text, nil
	}
	level, _ := entry["@level"].(string)
	var fields []Field
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if key == "@message" || key == "@level" || key == "@timestamp" || len(fields) == maxFields {
			continue
		}
		fields = append(fields, Field{l.clean(strings.TrimPrefix(key, "@")), l.clean(fmt.Sprint(entry[key]))})
	}
	return Level(level), message, fields
}

// Level reads the level words of hclog and of RFC 5424. An unknown one is information.
func Level(word string) slog.Level {
	switch word {
	case "trace", "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}
