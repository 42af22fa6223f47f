package importer

import (
	"math"
	"net/url"
	"regexp"
)

// tokenForm are forms that services give to their tokens.
var tokenForm = regexp.MustCompile(`^(sk-|sk_|pk_|rk_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|xox[abeoprs]-|xapp-|AIza|AKIA|ASIA|ya29\.|ey[JK][A-Za-z0-9_-]+\.|npm_|pypi-|hf_|lin_api_|lin_oauth_|ntn_|secret_|figd_|SG\.|shpat_|dop_v1_|dckr_pat_|tvly-|fc-|BSA|ctx7sk|phc_|phx_|sntrys_|r8_|gsk_|nvapi-|pat[A-Za-z0-9]{14}\.|PMAK-|CFPAT-|ATATT|v1\.0-|sq0|EAAA)[A-Za-z0-9_./+=-]{8,}`)

// secretValue reports whether a text looks like a secret, wherever it stands.
func secretValue(s string) bool {
	if tokenForm.MatchString(s) || hasLogin(s) {
		return true
	}
	return looksRandom(s)
}

// hasLogin reports whether a text is an address with a password, or with a token in the place of the user name.
func hasLogin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return false
	}
	_, ok := u.User.Password()
	return ok || secretValue(u.User.Username())
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
