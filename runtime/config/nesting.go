package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Limits of one file's text. The parser and the evaluator call themselves for every bracket and every operator, and Go ends a
// process whose stack outgrows its limit, so text that would do that is refused before it is parsed.
const (
	maxDepth     = 100  // brackets inside brackets
	maxOperators = 1000 // operators in one expression, outside its brackets
	maxTemplates = 1000 // %{ directives in one file
)

// tooDeep says which limit a text in native syntax breaks, or "".
func tooDeep(src []byte, name string) string {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	return tooManyTokens(tokens)
}

func tooManyTokens(tokens hclsyntax.Tokens) string {
	var opened []hclsyntax.TokenType
	operators, directives := []int{0}, 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp,
			hclsyntax.TokenTemplateControl, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
			operators[len(operators)-1]++ // an index or a call lengthens the chain it stands in
			opened, operators = append(opened, token.Type), append(operators, 0)
			if token.Type == hclsyntax.TokenTemplateControl {
				directives++
			}
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd,
			hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			if len(opened) > 0 {
				opened, operators = opened[:len(opened)-1], operators[:len(operators)-1]
			}
		case hclsyntax.TokenComma:
			operators[len(operators)-1] = 0
		case hclsyntax.TokenNewline:
			if len(opened) == 0 || opened[len(opened)-1] == hclsyntax.TokenOBrace {
				operators[len(operators)-1] = 0
			}
		case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
		default:
			operators[len(operators)-1]++
		}
		switch {
		case len(opened) > maxDepth:
			return fmt.Sprintf("Line %d has more than %d brackets inside each other.", token.Range.Start.Line, maxDepth)
		case operators[len(operators)-1] > maxOperators:
			return fmt.Sprintf("Line %d has more than %d operators in one expression.", token.Range.Start.Line, maxOperators)
		case directives > maxTemplates:
			return fmt.Sprintf("The text has more than %d template directives.", maxTemplates)
		}
	}
	return ""
}

// tooDeepJSON is tooDeep for JSON syntax: its brackets, and the templates that its texts are.
func tooDeepJSON(src []byte, name string) string {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return fmt.Sprintf("The file has more than %d brackets inside each other.", maxDepth)
			}
		case '}', ']':
			depth--
		case '"':
			start := i
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
			if detail := tooDeepText(src[start:min(i+1, len(src))], name); detail != "" {
				return detail
			}
		}
	}
	return ""
}

func tooDeepText(quoted []byte, name string) string {
	var template string
	if json.Unmarshal(quoted, &template) != nil || !strings.Contains(template, "{") {
		return "" // the parser reports what is no JSON
	}
	tokens, _ := hclsyntax.LexTemplate([]byte(template), name, hcl.InitialPos)
	if detail := tooManyTokens(tokens); detail != "" {
		return "In a text: " + detail
	}
	return ""
}
