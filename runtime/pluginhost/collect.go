package pluginhost

import (
	"encoding/json"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// maxBlocks bounds the content blocks of one result.
const maxBlocks = 10_000

// collector puts a result together from its pieces, within a limit in bytes.
type collector struct {
	limit      int
	size       int
	content    []tool.Content
	block      []byte // the unfinished content block
	structured []byte
	complete   bool // structured is
}

func (c *collector) grow(n int) error {
	if c.size += n; c.size > c.limit {
		return tool.Errorf(tool.ResultTooLarge, "its result is bigger than the limit of %d bytes; ask for less (a filter, a page, a range)", c.limit)
	}
	return nil
}

func (c *collector) chunk(k *pb.Chunk) error {
	if err := c.grow(len(k.GetData())); err != nil {
		return err
	}
	switch k.GetPart() {
	case pb.Chunk_PART_CONTENT:
		if c.block = append(c.block, k.GetData()...); k.GetLast() {
			block := c.block
			c.block = nil
			return c.add(block)
		}
	case pb.Chunk_PART_STRUCTURED:
		if c.complete {
			return badAnswer("it sent a second structured result")
		}
		c.structured = append(c.structured, k.GetData()...)
		c.complete = k.GetLast()
	default:
		return badAnswer("it sent a piece of an unknown part")
	}
	return nil
}

// add takes one finished content block: a JSON object with a type.
func (c *collector) add(block []byte) error {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(block, &head); err != nil || head.Type == "" {
		return badAnswer("content block %d is not a JSON object with a type", len(c.content)+1)
	}
	if len(c.content) == maxBlocks {
		return badAnswer("it sent more than %d content blocks", maxBlocks)
	}
	c.content = append(c.content, tool.Content(block))
	return nil
}

// finish ends the result.
func (c *collector) finish(r *pb.Result) (*tool.Result, error) {
	if len(c.block) > 0 || len(c.structured) > 0 && !c.complete {
		return nil, badAnswer("it ended the call in the middle of a piece")
	}
	for _, block := range r.GetContent() {
		if err := c.grow(len(block)); err != nil {
			return nil, err
		}
		if err := c.add(block); err != nil {
			return nil, err
		}
	}
	if err := c.grow(len(r.GetStructured()) + len(r.GetMeta())); err != nil {
		return nil, err
	}
	result := &tool.Result{Content: c.content, IsError: r.GetIsError()}
	switch {
	case c.complete && len(r.GetStructured()) > 0:
		return nil, badAnswer("it sent a second structured result")
	case c.complete:
		result.Structured = c.structured
	case len(r.GetStructured()) > 0:
		result.Structured = r.GetStructured()
	}
	if result.Structured != nil && !json.Valid(result.Structured) {
		return nil, badAnswer("its structured result is not JSON")
	}
	if len(r.GetMeta()) > 0 {
		if !isObject(r.GetMeta()) {
			return nil, badAnswer("the _meta of its result is not a JSON object")
		}
		result.Meta = r.GetMeta()
	}
	return result, nil
}
