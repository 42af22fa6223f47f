package importer

import (
	"math"
	"net/url"
	"regexp"
	"strings"
)

// secretWords are parts of names whose values are secrets.
var secretWords = []string{
	"token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "api_key", "credential", "cookie", "private_key",
	"access_key", "authorization", "auth_key", "bearer", "dsn", "connection_string", "webhook_url", "pat", "key", "pass",
}

// secretName reports whether a variable, header or flag of this name holds a secret. Words count as a whole, so that
// "keyboard" and "path" are none.
func secretName(name string) bool {
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

// tokenForm are forms that services give to their tokens.
var tokenForm = regexp.MustCompile(`^(sk-|sk_|pk_|rk_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|xox[abeoprs]-|xapp-|AIza|AKIA|ASIA|ya29\.|ey[JK][A-Za-z0-9_-]+\.|npm_|pypi-|hf_|lin_api_|lin_oauth_|ntn_|secret_|figd_|SG\.|shpat_|dop_v1_|dckr_pat_|tvly-|fc-|BSA|ctx7sk|phc_|phx_|sntrys_|r8_|gsk_|nvapi-|pat[A-Za-z0-9]{14}\.|PMAK-|CFPAT-|ATATT|v1\.0-|sq0|EAAA)[A-Za-z0-9_./+=-]{8,}`)

// secretValue reports whether a text looks like a secret, wherever it stands.
func secretValue(s string) bool {
	if tokenForm.MatchString(s) || hasPassword(s) {
		return true
	}
	return looksRandom(s)
}

func hasPassword(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return false
	}
	_, ok := u.User.Password()
	return ok
}

// plainWord is a text that is long but no secret: a path, a package, an address, a UUID-like version, words.
var plainWord = regexp.MustCompile(`[/\\:@ ]|^\d+(\.\d+)+|^[a-z]+([-_.][a-z0-9]+)*$|^[A-Z]+([-_.][A-Z0-9]+)*$`)

// The least that makes a text look random: its length, and the bits in each of its characters.
const (
	randomLength = 24
	randomBits   = 3.5
)

func looksRandom(s string) bool {
	if len(s) < randomLength || plainWord.MatchString(s) {
		return false
	}
	digits, letters := false, false
	counts := map[rune]float64{}
	for _, r := range s {
		digits = digits || r >= '0' && r <= '9'
		letters = letters || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		counts[r]++
	}
	bits := 0.0
	for _, n := range counts {
		p := n / float64(len(s))
		bits -= p * math.Log2(p)
	}
	return digits && letters && bits >= randomBits
}
