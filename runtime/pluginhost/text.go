package pluginhost

import "strings"

// maxText bounds a text of the plugin in statuses, errors and answers, in bytes.
const maxText = 4 << 10

// cut bounds a text and makes it valid UTF-8.
func cut(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
