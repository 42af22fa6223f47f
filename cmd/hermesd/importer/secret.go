package importer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/hermesd/hermesd/internal/redact"
)

// What is a secret is judged by its name and by its looks, on the safe side: a secret too many costs a variable, a literal too
// many lets everybody read it. Plain words stay literal even so, since a secret's value is masked wherever it stands.

// secretWords are parts of names of secrets besides those that hermesd masks by themselves: what these say is not always one.
var secretWords = []string{
	"auth", "pin", "otp", "totp", "session", "sid", "sessionid", "jwt", "sas", "signature", "sig", "mnemonic",
	"private", "license", "pw", "passcode", "connstr", "conn", "webhook", "creds", "cred", "login",
}

// secretEndings end words that people write together, such as PGPASSWORD.
var secretEndings = []string{"token", "secret", "password", "passwd", "passphrase", "pgpass", "apikey", "accesskey", "secretkey", "accountkey", "authkey"}

// secretName reports whether what has this name is a secret unless its value is plainly none.
func secretName(name string) bool {
	words := nameWords(name)
	if redact.SecretName(strings.Join(words, "_")) {
		return true
	}
	for _, w := range words {
		if slices.Contains(secretWords, w) || slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(w, end) }) {
			return true
		}
	}
	return false
}

var camelHump = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func nameWords(name string) []string {
	return strings.FieldsFunc(strings.ToLower(camelHump.ReplaceAllString(name, "${1}_${2}")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// harmlessNames are names, and last words of names, of what is no secret even if it is no plain word.
var harmlessNames = regexp.MustCompile(`(?i)^(path|home|user|shell|lang|tz|term|tmpdir|debug|accept|user-agent|host|hostname|node_options|java_opts|pythonpath)$|` +
	`(^|[-_])(dir|directory|path|file|folder|root|mode|type|level|format|host|hostname|port|region|zone|model|name|version|timeout|limit|ttl|count|size|max|min|enabled|disabled|method|provider|id|ids|language|encoding|env|environment)$|^(lc|xdg|max|min|use|enable|disable)_`)

// secretValue reports whether a value that a file gives under a name is a secret. Of one that refers to variables, the name
// alone tells.
func secretValue(name, value string) bool {
	if reference.MatchString(value) {
		return secretName(name) && !harmlessNames.MatchString(name)
	}
	return !harmless(name, value)
}

// harmless reports whether a value is plainly no secret under its name.
func harmless(name, value string) bool {
	switch {
	case value == "" || flagWord.MatchString(value):
		return true
	case secretText(value):
		return false
	case secretName(name):
		return harmlessNames.MatchString(name) && plain(value)
	}
	return harmlessNames.MatchString(name) || plain(value)
}

var (
	flagWord = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|none|null|auto|oauth2?|bearer|basic|enabled|disabled|0|1)$`)
	figure   = regexp.MustCompile(`^-?\d{1,9}([.:_-]\d{1,9})*[a-zA-Z%]{0,3}$`) // a number, size, time, date, version or pair of ports
	rooted   = regexp.MustCompile(`^(~|\.{1,2})?/|^\.{1,2}$|^[A-Za-z]:\\`)
	absolute = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	// wordy is a few words, also of names of hosts, models, packages and languages.
	wordy     = regexp.MustCompile(`^[*@]?` + wordlet + `([-_./, @*+]+` + wordlet + `)*(:\d{1,5})?[.*]?$|^\*$`)
	noNumbers = regexp.MustCompile(`^[^0-9]*$`)
)

const wordlet = `(\p{L}{1,20}|\d{1,8}|[vV]\d{1,4}|\p{L}{1,2}\d{1,2}|\d{1,3}\p{L}{1,2})`

// plain reports whether a value is a number, a path, an address, or some words.
func plain(value string) bool {
	return len(value) <= 200 && (figure.MatchString(value) || rooted.MatchString(value) || absolute.MatchString(value) || wordy.MatchString(value))
}

// tokenForm are forms that services give to their tokens.
var tokenForm = regexp.MustCompile(`^(sk-|sk_|pk_|rk_|gh[opusr]_|github_pat_|glpat-|xox[a-z]-|xapp-|AIza|AKIA|ASIA|ya29\.|ey[JK]|npm_|pypi-|hf_|lin_api_|lin_oauth_|ntn_|figd_|SG\.|shpat_|dop_v1_|dckr_pat_|tvly-|ctx7sk|phx_|sntrys_|r8_|gsk_|nvapi-|PMAK-|CFPAT-|ATATT|EAAA)[A-Za-z0-9_.+=-]{8,}`)

// assigned is a secret with its name before it, as in connection strings, JSON and scripts.
var assigned = regexp.MustCompile(`(?i)(password|passwd|pwd|passphrase|secret|account_?key|shared_?access_?key|access_?key|api[-_]?key|access[-_]?token|auth[-_]?token|token)["']?\s*[=:]\s*["']?[^\s"';,}]|` +
	`\b(bearer|basic)\s+[^\s"'$]{6,}|^[^\s:/@]+:[^\s:/@]+@[^\s/]`)

// secretText reports whether a text looks like a secret, or like one that holds some, whatever its name.
func secretText(s string) bool {
	s = digest.ReplaceAllString(s, "")
	if assigned.MatchString(s) && !strings.HasPrefix(s, "npm:") || secretJSON(s) {
		return true
	}
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`=:/\\;,&?|<>(){}[]@", r) }) {
		if tokenForm.MatchString(word) {
			return true
		}
	}
	switch {
	case absolute.MatchString(s):
		return strings.Count(s, "://") > maxNested || hasLogin(s) || slices.ContainsFunc(splitAddress(s), func(p addressPart) bool { return p.secret })
	case base64Key.MatchString(s) && mixed(s):
		return true
	case rooted.MatchString(s), strings.Contains(s, "/"): // paths, packages, images: with digests that are none
		return slices.ContainsFunc(alphanumeric(s), func(run string) bool { return len(run) >= longRun && mixed(run) && !readable.MatchString(run) })
	}
	return opaque(s)
}

// maxNested is how many addresses within each other are looked at; nobody writes more.
const maxNested = 8

// secretJSON reports whether a text is JSON that gives something secret.
func secretJSON(s string) bool {
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return false
	}
	v, err := decodeJSON([]byte(s))
	return err == nil && v.anySecret("")
}

func (v value) anySecret(name string) bool {
	return v.kind == str && (secretName(name) && !harmless(name, v.text) || secretText(v.text)) ||
		slices.ContainsFunc(v.items, func(item value) bool { return item.anySecret(name) }) ||
		slices.ContainsFunc(v.members, func(m member) bool { return m.value.anySecret(m.name) })
}

// digest says which image or file is meant, and is no secret.
var digest = regexp.MustCompile(`\bsha(256|384|512)[:-][A-Za-z0-9+/=]+`)

var base64Key = regexp.MustCompile(`^[A-Za-z0-9+/]{32,}={0,2}$`)

// The least lengths, in bytes, of a text that may be taken for a random one, and of a part of a path.
const (
	longText = 16
	longRun  = 20
)

// readable is a run of letters and digits that somebody made of words and numbers.
var readable = regexp.MustCompile(`^\p{L}?\p{Ll}{0,22}(\p{Lu}{1,6}\p{Ll}{2,22})*\d{0,4}$|^\p{Lu}{1,22}\d{0,4}$|^\d{1,14}\p{L}{0,3}$|^[\p{L}\d]{1,4}$`)

// opaque reports whether a text is long and not made of words and numbers.
func opaque(s string) bool {
	return len(s) >= longText && slices.ContainsFunc(alphanumeric(s), func(run string) bool { return !readable.MatchString(run) })
}

func alphanumeric(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// mixed reports whether a text has letters of both cases and digits.
func mixed(s string) bool {
	return strings.ContainsFunc(s, unicode.IsUpper) && strings.ContainsFunc(s, unicode.IsLower) && !noNumbers.MatchString(s)
}
