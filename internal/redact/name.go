package redact

import "strings"

// secretWords are parts of names whose values are secrets.
var secretWords = []string{
	"token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "api_key", "credential", "cookie", "private_key",
	"access_key", "authorization", "auth_key", "bearer", "dsn", "connection_string", "webhook_url", "pat", "key", "pass",
}

// SecretName reports whether a variable, header or flag of this name holds a secret. Words count as a whole, so that
// "keyboard" and "path" are none.
func SecretName(name string) bool {
	words := "_" + strings.Join(strings.FieldsFunc(splitCamel(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}), "_") + "_"
	for _, w := range secretWords {
		if strings.Contains(words, "_"+w+"_") || strings.Contains(words, "_"+w+"s_") {
			return true
		}
	}
	return strings.Contains(words, "apikey") || strings.Contains(words, "authtoken") || strings.Contains(words, "accesstoken")
}

// splitCamel puts words of a camel-case name apart, in lower case.
func splitCamel(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z' {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
