package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/tool"
)

// Scheme begins the URI of a kept result, followed by its id.
const Scheme = "hermesd://results/"

// Fit returns r if an agent may get it whole. Else it keeps it and returns its beginning with the id and how to go on.
// Images and audio are not text and stay beside the preview.
func (s *Store) Fit(agent, session string, r *tool.Result) *tool.Result {
	if r.Size() <= s.options.MaxChars { // bytes are never fewer than characters
		return r
	}
	text, media := split(r)
	chars := 0
	for _, c := range text {
		chars += length(c)
	}
	structured := utf8.RuneCount(r.Structured)
	if chars <= s.options.MaxChars && structured <= s.options.MaxChars {
		return r
	}
	document := documentOf(r, text)
	id, err := s.keep(agent, session, document)
	end := runes(document, s.options.Preview)
	note := fmt.Sprintf("[These are the first %d of %d characters of the result. ", utf8.RuneCountInString(document[:end]), utf8.RuneCountInString(document))
	out := &tool.Result{IsError: r.IsError, Meta: r.Meta}
	if structured <= s.options.MaxChars {
		out.Structured = r.Structured
	}
	out.Content = append(out.Content, tool.Text(document[:end]))
	if err != nil {
		note += fmt.Sprintf("The rest is lost: %v. Call the tool again so that it returns less.]", err)
		out.Content = append(out.Content, tool.Text(note))
	} else {
		note += fmt.Sprintf("The whole is kept for this session: go on with %s {\"id\":%q,\"offset\":%d}.]", ToolName, id, s.options.Preview)
		out.Content = append(out.Content, tool.Text(note), link(id, len(document), r.IsError))
	}
	out.Content = append(out.Content, media...)
	return out
}

// split parts the blocks that are text from those that are not.
func split(r *tool.Result) (text, media []tool.Content) {
	for _, c := range r.Content {
		var block struct{ Type string }
		if json.Unmarshal(c, &block) == nil && (block.Type == "image" || block.Type == "audio") {
			media = append(media, c)
		} else {
			text = append(text, c)
		}
	}
	return text, media
}

func length(c tool.Content) int {
	if t, ok := c.AsText(); ok {
		return utf8.RuneCountInString(t)
	}
	return utf8.RuneCount(c)
}

// documentOf is what an agent reads of a result piece by piece: its texts, or the JSON of the result if there is more to it.
func documentOf(r *tool.Result, text []tool.Content) string {
	var parts []string
	for _, c := range text {
		t, ok := c.AsText()
		if !ok {
			t = string(c) // a resource or a link, as its JSON
		}
		parts = append(parts, t)
	}
	joined := strings.Join(parts, "\n")
	switch {
	case len(r.Structured) == 0 || joined == string(r.Structured):
		return joined
	case joined == "":
		return string(r.Structured)
	default:
		return joined + "\n\nstructuredContent:\n" + string(r.Structured)
	}
}

// runes is the number of bytes of the first n characters of s.
func runes(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func link(id string, size int, failed bool) tool.Content {
	raw, err := json.Marshal(struct {
		Type        string `json:"type"`
		URI         string `json:"uri"`
		Name        string `json:"name"`
		Description string `json:"description"`
		MIMEType    string `json:"mimeType"`
		Size        int    `json:"size"`
	}{"resource_link", Scheme + id, "result " + id, map[bool]string{false: "the whole result", true: "the whole of what the tool said when it failed"}[failed], "text/plain", size})
	if err != nil {
		panic("results: plain strings did not marshal: " + err.Error())
	}
	return tool.Content(raw)
}
